import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { SMTPServer } from 'smtp-server'
import { afterEach, expect, test, vi } from 'vitest'
import { Receiver } from '../../test/receiver.ts'
import { readSettings } from '../config.ts'
import { createAddressGuard } from '../outbound/address-guard.ts'
import { CLAIMED_FOR_MS } from '../store/alerts/alerts.ts'
import { createPoster, type PostRequest } from '../webhooks/posting/post.ts'
import { testMessage } from './message.ts'
import { AlertSender } from './send.ts'

const MESSAGE = testMessage(null, 0)

afterEach(() => vi.restoreAllMocks())

test('a post has a timeout of its own, shorter than the claim of its notices', async () => {
  const receiver = await new Receiver().listen()
  receiver.answerWith({ kind: 'hang' })
  const guard = createAddressGuard({ loopbackAndPrivateAllowed: true, allowedNetworks: [], ownPorts: [] })
  const poster = createPoster({ guard, timeoutMs: 600_000 })
  try {
    const timeouts: (number | undefined)[] = []
    const send = ({ timeoutMs, ...request }: PostRequest) => {
      timeouts.push(timeoutMs)
      return poster.send({ ...request, timeoutMs: 50 })
    }
    const sender = new AlertSender({ post: { send }, mail: null, version: '1', now: () => 0 })
    const error = await sender.send({ channel: 'slack', address: { url: receiver.url } }, MESSAGE)
    expect(error).toBe('The request failed: timeout.')
    expect(timeouts).toEqual([10_000])
    expect(10_000).toBeLessThan(CLAIMED_FOR_MS)
  } finally {
    await poster.close()
    await receiver.close()
  }
})

test('an e-mail is given up, and its connection closed, before the claim of its notices ends', async () => {
  const { promise: asked, resolve } = Promise.withResolvers<void>()
  // The server never answers the sender's address.
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    onMailFrom: () => resolve(),
  })
  server.listen(0, '127.0.0.1')
  await once(server.server, 'listening')
  const limit = new AbortController()
  const timeout = vi.spyOn(AbortSignal, 'timeout').mockReturnValue(limit.signal)
  const { port } = server.server.address() as AddressInfo
  const mail = { url: `smtp://127.0.0.1:${port}`, from: 'pombal@example.com' }
  const sender = new AlertSender({ post: { send: () => Promise.reject() }, mail, version: '1', now: () => 0 })
  const sent = sender.send({ channel: 'email', address: { to: 'night@example.com' } }, MESSAGE)
  await asked
  limit.abort(new Error('The time is up.'))
  expect(await sent).toBe('The mail server did not take the message within 30 s.')
  expect(timeout.mock.calls).toEqual([[30_000]])
  expect(30_000).toBeLessThan(CLAIMED_FOR_MS)
  await new Promise<void>(closed => server.close(() => closed()))
})

test.each([
  ['0.0.0.0', '', { authenticated: 0, sent: false }],
  ['0.0.0.0', '?requireTLS=false', { authenticated: 1, sent: true }],
  ['127.0.0.1', '', { authenticated: 1, sent: true }],
])(
  'a password for the mail server at %s%s is sent only over TLS, unless the server is on this machine or the URL says so',
  async (host, query, expected) => {
    let authenticated = 0
    // As if somebody between the two had removed STARTTLS from the server's answer.
    const server = new SMTPServer({
      disabledCommands: ['STARTTLS'],
      allowInsecureAuth: true,
      onAuth: ({ password }, _session, callback) => {
        if (password === 'p@ss') authenticated += 1
        callback(null, { user: 'ana' })
      },
    })
    server.listen(0, '127.0.0.1')
    await once(server.server, 'listening')
    const { port } = server.server.address() as AddressInfo
    const env = { SMTP_URL: `smtp://ana:p%40ss@${host}:${port}${query}`, SMTP_FROM: 'pombal@example.com' }
    const { mail } = readSettings(env)
    const sender = new AlertSender({ post: { send: () => Promise.reject() }, mail, version: '1', now: () => 0 })
    const error = await sender.send({ channel: 'email', address: { to: 'night@example.com' } }, MESSAGE)
    await new Promise<void>(closed => server.close(() => closed()))
    expect({ authenticated, sent: error === null }).toEqual(expected)
  },
)
