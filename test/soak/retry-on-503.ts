import { setTimeout as sleep } from 'node:timers/promises'
import { ApiError } from '../api-client.ts'

const RETRY_AFTER_MS = 500

/** Repeats a call until its response is not 503, which a machine that is too slow may cause. */
export async function retryOn503<T>(call: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await call()
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 503) throw error
      await sleep(RETRY_AFTER_MS)
    }
  }
}
