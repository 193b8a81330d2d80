import { setTimeout as sleep } from 'node:timers/promises'
import { ApiError } from '../api-client.ts'

const AGAIN_AFTER_MS = 500

/** Asks again for as long as the service says 503, which is safe to repeat: on a machine that is too slow it does. */
export async function patiently<T>(ask: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await ask()
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 503) throw error
      await sleep(AGAIN_AFTER_MS)
    }
  }
}
