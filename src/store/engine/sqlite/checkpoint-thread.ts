/**
 * Writes SQLite's log back into the database, or rewrites the log, in a thread of its own. Started by `LogCheckpoints`.
 */
import { parentPort, workerData } from 'node:worker_threads'
import Sqlite from 'better-sqlite3'
import type { CheckpointMode, CheckpointResult, ThreadData } from './log-checkpoints.ts'
import { rewriteLog } from './rewrite-log.ts'

const { path, log, index } = workerData as ThreadData
// Without a timeout: a checkpoint that meets a lock reports it, and the main thread tries again.
const db = new Sqlite(path, { timeout: 0, fileMustExist: true })
db.pragma('synchronous = FULL')

function checkpoint(mode: CheckpointMode): CheckpointResult {
  try {
    if (mode === 'rewrite') return { isBusy: false, frames: rewriteLog(log, index) }
    const [result] = db.pragma(`wal_checkpoint(${mode})`) as [{ busy: number; log: number }]
    return { isBusy: result.busy !== 0, frames: result.log }
  } catch (error) {
    const { message, code } = error as { message: string; code?: string }
    return { message, code: code ?? 'SQLITE_ERROR' }
  }
}

parentPort?.on('message', (mode: CheckpointMode) => parentPort?.postMessage(checkpoint(mode)))
