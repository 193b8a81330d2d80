import { scryptSync } from 'node:crypto'
import { parentPort, workerData } from 'node:worker_threads'
import { lowerThreadPriority } from '../../../../kit/thread-priority.ts'
import type { Derivation } from './scrypt.ts'

lowerThreadPriority(10)
const { password, salt, keyBytes, cost } = workerData as Derivation
parentPort?.postMessage(scryptSync(password, salt, keyBytes, cost))
