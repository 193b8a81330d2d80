import { DISK_FAULTS } from './disk-faults.ts'
import type { Fault } from './fault.ts'
import { NODE_FAULTS } from './node-faults.ts'
import { sharedCredentials } from './shared-credentials.ts'
import { START_FAULTS } from './start-faults.ts'
import { THREAD_FAULTS } from './thread-faults.ts'

export const FAULTS: readonly Fault[] = [
  ...NODE_FAULTS,
  ...THREAD_FAULTS,
  ...DISK_FAULTS,
  ...START_FAULTS,
  sharedCredentials,
]
