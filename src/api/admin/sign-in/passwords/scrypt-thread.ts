import { scryptSync } from 'node:crypto'
import { setPriority } from 'node:os'
import { parentPort, workerData } from 'node:worker_threads'
import type { Derivation } from './scrypt.ts'

const LOW_PRIORITY = 10

// On Linux this sets the priority of this thread only, elsewhere of the whole process.
if (process.platform === 'linux') {
  try {
    setPriority(LOW_PRIORITY)
  } catch {
    // If the host forbids it, the usual priority remains.
  }
}
const { password, salt, keyBytes, cost } = workerData as Derivation
parentPort?.postMessage(scryptSync(password, salt, keyBytes, cost))
