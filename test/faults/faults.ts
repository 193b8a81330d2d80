import type { Fault } from './fault.ts'
import { FAULTS_OF_NODES } from './faults-of-nodes.ts'

export const FAULTS: readonly Fault[] = FAULTS_OF_NODES
