import type { Fault } from './fault.ts'
import { FAULTS_OF_DISKS } from './faults-of-disks.ts'
import { FAULTS_OF_NODES } from './faults-of-nodes.ts'
import { FAULTS_OF_STARTS } from './faults-of-starts.ts'
import { oneAccount } from './one-account.ts'

export const FAULTS: readonly Fault[] = [...FAULTS_OF_NODES, ...FAULTS_OF_DISKS, ...FAULTS_OF_STARTS, oneAccount]
