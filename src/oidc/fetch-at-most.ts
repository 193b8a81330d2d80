import { ProviderUnreachable } from './errors.ts'

/** The size limit of an answer, after decompression. */
const MAX_BYTES = 1024 * 1024
/** Answers that cannot have a body. */
const WITHOUT_BODY: ReadonlySet<number> = new Set([204, 205, 304])

/**
 * Reads an answer of at most 1 MiB.
 * @throws ProviderUnreachable if the provider does not answer, or answers with a status of 500 or more
 */
export async function fetchAtMost(url: string, options: object): Promise<Response> {
  const response = await fetch(url, options).catch(unreachable)
  const { status, statusText, headers } = response
  if (status >= 500) {
    await response.body?.cancel()
    throw new ProviderUnreachable(`status ${status}`)
  }
  const body = await readAtMost(response)
  return new Response(WITHOUT_BODY.has(status) ? null : body, { status, statusText, headers })
}

async function readAtMost({ body }: Response): Promise<Buffer> {
  const parts: Uint8Array[] = []
  let bytes = 0
  const reader = body?.getReader()
  while (reader !== undefined) {
    const { done, value } = await reader.read().catch(unreachable)
    if (done) break
    bytes += value.length
    if (bytes > MAX_BYTES) {
      await reader.cancel()
      throw new Error('an answer of more than 1 MiB')
    }
    parts.push(value)
  }
  return Buffer.concat(parts)
}

function unreachable(error: unknown): never {
  throw new ProviderUnreachable('no answer', { cause: error })
}
