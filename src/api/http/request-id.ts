import { randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'

/** 1–128 visible ASCII characters (contract §1). */
const KEPT = /^[\x21-\x7e]{1,128}$/
const PREFIX_BYTES = 6

/** Keeps the caller's ID. Otherwise returns a counter with a prefix that is unique to this process. */
export function createRequestIds(): (request: IncomingMessage) => string {
  const prefix = `req_${randomBytes(PREFIX_BYTES).toString('hex')}_`
  let count = 0
  return request => {
    const callerId = request.headers['x-request-id']
    if (typeof callerId === 'string' && KEPT.test(callerId)) return callerId
    count += 1
    return prefix + count.toString(36)
  }
}
