import { once } from 'node:events'
import { request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { PassThrough } from 'node:stream'
import Fastify from 'fastify'
import { pino } from 'pino'
import { afterEach, describe, expect, test } from 'vitest'
import type { Api } from '../../context.ts'
import { parseBearer, tokenDigest } from '../../input.ts'
import { createErrorHandler } from '../error-handler.ts'
import { KnownCallers } from './known-callers.ts'
import { refuseWhenBusy } from './open-request-limits.ts'

const MAX_CALLERS = 8

const bearer = (key: string) => ({ authorization: `Bearer ${key}` })

describe('open requests', () => {
  let api: Api

  afterEach(() => api.close())

  async function start(maxOpen: number, ofStrangers = maxOpen) {
    api = Fastify({ forceCloseConnections: true }) as unknown as Api
    api.setErrorHandler(createErrorHandler(pino({ level: 'silent' })))
    refuseWhenBusy(api, new KnownCallers(MAX_CALLERS), { known: maxOpen, strangers: ofStrangers })
    api.decorateRequest('key', null)
    api.addHook('onRequest', (request, reply, done) => {
      const key = parseBearer(request.headers.authorization) ?? 'none'
      const acceptKey = () => {
        request.key = { holder: `holder of ${key}`, digest: tokenDigest(key) }
        done()
      }
      if (request.routeOptions.config.quiet || key === 'none') done()
      else if (key === 'bad') reply.code(401).send()
      // The caller disconnects while the store looks for the key.
      else if (key === 'gone') reply.raw.once('close', () => setImmediate(acceptKey))
      else acceptKey()
    })
    api.get('/slow', () => new Promise(() => undefined))
    api.get('/quick', async () => 'done')
    api.get('/stream', async (_request, reply) => reply.send(new PassThrough()))
    api.post('/body', async () => 'read')
    api.get('/large', async () => Buffer.alloc(50_000_000))
    api.get('/healthz', { config: { quiet: true, alwaysServed: true } }, async () => 'alive')
    api.post('/link', { config: { quiet: true } }, async () => 'read')
    await api.listen({ host: '127.0.0.1', port: 0 })
    return `http://127.0.0.1:${(api.server.address() as AddressInfo).port}`
  }

  /** @returns a function that aborts the request */
  async function ask(url: string, key = 'none', length?: number): Promise<() => Promise<void>> {
    const arrived = once(api.server, 'request')
    const body = length !== undefined && { 'content-length': length, 'content-type': 'text/plain' }
    const headers = { ...bearer(key), ...body }
    const method = length === undefined ? 'GET' : 'POST'
    const asked = request(url, { agent: false, method, headers }).on('error', () => undefined)
    if (length === undefined) asked.end()
    else asked.flushHeaders()
    const [, response] = await arrived
    return async () => {
      asked.destroy()
      await once(response, 'close')
    }
  }

  test('beyond the limit are refused with Retry-After until one has ended', async () => {
    const url = await start(1)
    const breakOff = await ask(`${url}/slow`)
    const refused = await fetch(`${url}/quick`)
    expect(refused.status).toBe(503)
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
    expect((await fetch(`${url}/healthz`)).status).toBe(200)
    await breakOff()
    expect((await fetch(`${url}/quick`)).status).toBe(200)
  })

  test('do not count if the caller disconnected while its key was checked', async () => {
    const url = await start(1)
    for (let n = 0; n < 3; n += 1) await (await ask(`${url}/stream`, 'gone'))()
    await new Promise(resolve => setTimeout(resolve, 50))
    expect((await fetch(`${url}/quick`, { headers: bearer('good') })).status).toBe(200)
    expect((await fetch(`${url}/quick`, { headers: bearer('good') })).status).toBe(200)
  })

  test('of strangers do not count against callers whose key was accepted before', async () => {
    const url = await start(1, 1)
    const call = async (key: string) => (await fetch(`${url}/quick`, { headers: bearer(key) })).status
    expect(await call('good')).toBe(200)
    await ask(`${url}/slow`)
    expect(await call('bad')).toBe(503)
    expect(await call('good')).toBe(200)
    await ask(`${url}/slow`, 'good')
    expect(await call('good')).toBe(503)
  })

  test('of one holder of keys leave places for other holders, before and after the key is checked', async () => {
    const url = await start(80)
    const call = async (key: string) => (await fetch(`${url}/quick`, { headers: bearer(key) })).status
    for (let n = 0; n < 80; n += 1) await ask(`${url}/slow`, 'greedy')
    expect(await call('greedy')).toBe(503)
    expect(await call('good')).toBe(200)
    for (let n = 0; n < 80; n += 1) await ask(`${url}/body`, 'greedier', 10)
    expect(await call('greedier')).toBe(503)
    expect(await call('good')).toBe(200)
  })

  test('of strangers do not count against known callers, even if one key is sent with any number of cookies', async () => {
    const url = await start(8, 1)
    const call = async (key: string) => (await fetch(`${url}/quick`, { headers: bearer(key) })).status
    expect(await call('good')).toBe(200)
    for (let n = 0; n < 2 * MAX_CALLERS; n += 1) {
      await api.inject({ url: '/quick', headers: { ...bearer('greedy'), cookie: `x=${n}` } })
    }
    await ask(`${url}/slow`)
    expect(await call('bad')).toBe(503)
    expect(await call('good')).toBe(200)
  })

  test('do not count while a caller with a key sends a body to a call that takes no key', async () => {
    const url = await start(8, 1)
    const call = async (key: string) => (await fetch(`${url}/quick`, { headers: bearer(key) })).status
    expect(await call('good')).toBe(200)
    for (let n = 0; n < 20; n += 1) await ask(`${url}/link`, 'good', 10)
    expect(await call('good')).toBe(200)
    expect(await call('other')).toBe(200)
  })

  test('do not count while a body arrives from a stranger, or while the answer waits for its reader', async () => {
    const url = await start(1)
    for (let n = 0; n < 5; n += 1) await ask(`${url}/body`, 'none', 10)
    for (let n = 0; n < 5; n += 1) {
      const asked = request(`${url}/large`, { agent: false }).on('error', () => undefined)
      asked.end()
      await once(asked, 'response')
    }
    expect((await fetch(`${url}/quick`)).status).toBe(200)
    expect((await fetch(`${url}/body`, { method: 'POST', body: 'x' })).status).toBe(200)
  })
})
