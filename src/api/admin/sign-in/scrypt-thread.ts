import { scryptSync } from 'node:crypto'
import { setPriority } from 'node:os'
import { parentPort, workerData } from 'node:worker_threads'
import type { Derivation } from './scrypt.ts'

const LOW_PRIORITY = 10

// On Linux this is the priority of this thread alone, elsewhere that of the whole process.
if (process.platform === 'linux') {
  try {
    setPriority(LOW_PRIORITY)
  } catch {
    // A host that forbids it gets the same key, at the usual priority.
  }
}
const { password, salt, keyBytes, cost } = workerData as Derivation
parentPort?.postMessage(scryptSync(password, salt, keyBytes, cost))
