import { parentPort, workerData } from 'node:worker_threads'
import { type StoredValue, tryToReadSession } from '../baileys/transfer/session.ts'

parentPort?.postMessage(tryToReadSession(workerData as readonly StoredValue[]))
