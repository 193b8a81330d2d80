import { randomBytes } from 'node:crypto'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { expect, test } from 'vitest'
import { tokenDigest } from '../../input.ts'
import { KnownCallers } from './known-callers.ts'

const SESSION = randomBytes(32).toString('base64url')
const OTHER = randomBytes(32).toString('base64url')

const request = (headers: IncomingHttpHeaders) => ({ headers }) as IncomingMessage

test('a key is recognised, whatever other headers its requests have', () => {
  const callers = new KnownCallers()
  callers.add({ holder: 'inst_1', digest: tokenDigest('pmb_1') })
  for (const cookie of ['', 'x=1', `pombal_session=${SESSION}`])
    expect(callers.holderOf(request({ authorization: 'bearer  pmb_1', cookie }))).toBe('inst_1')
  expect(callers.holderOf(request({ authorization: 'Bearer pmb_2' }))).toBeNull()
  expect(callers.holderOf(request({ cookie: 'pmb_1' }))).toBeNull()
  expect(callers.holderOf(request({}))).toBeNull()
})

test('a session is recognised by its cookie alone, with and without https', () => {
  const callers = new KnownCallers()
  callers.add({ holder: 'acc_1', digest: tokenDigest(SESSION) })
  const cookies = [
    `pombal_session=${SESSION}`,
    `__Host-pombal_session=${SESSION}; theme=dark`,
    `pombal_session=${OTHER}; __Host-pombal_session=${SESSION}`,
  ]
  for (const cookie of cookies) expect(callers.holderOf(request({ cookie }))).toBe('acc_1')
  callers.forget(request({ cookie: `pombal_session=${SESSION}` }))
  expect(callers.holderOf(request({ cookie: cookies[0] }))).toBeNull()
})

test('one key that is accepted any number of times takes one place', () => {
  const callers = new KnownCallers(2)
  callers.add({ holder: 'inst_1', digest: tokenDigest('pmb_1') })
  for (let n = 0; n < 5; n += 1) callers.add({ holder: 'inst_2', digest: tokenDigest('pmb_2') })
  expect(callers.holderOf(request({ authorization: 'Bearer pmb_1' }))).toBe('inst_1')
})
