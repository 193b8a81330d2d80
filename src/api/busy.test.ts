import { once } from 'node:events'
import { request } from 'node:http'
import type { AddressInfo } from 'node:net'
import Fastify from 'fastify'
import { pino } from 'pino'
import { afterEach, describe, expect, test } from 'vitest'
import { refuseWhenBusy } from './busy.ts'
import type { Api } from './context.ts'
import { createErrorHandler } from './errors.ts'

describe('more open requests than the server takes', () => {
  let api: Api

  afterEach(() => api.close())

  async function start(maxOpen: number) {
    api = Fastify({ forceCloseConnections: true }) as unknown as Api
    api.setErrorHandler(createErrorHandler(pino({ level: 'silent' })))
    refuseWhenBusy(api, maxOpen)
    api.get('/slow', () => new Promise(() => undefined))
    api.get('/quick', async () => 'done')
    api.get('/healthz', { config: { quiet: true } }, async () => 'alive')
    await api.listen({ host: '127.0.0.1', port: 0 })
    return `http://127.0.0.1:${(api.server.address() as AddressInfo).port}`
  }

  /** @returns breaks it off */
  async function ask(url: string): Promise<() => Promise<void>> {
    const arrived = once(api.server, 'request')
    const asked = request(url, { agent: false }).on('error', () => undefined)
    asked.end()
    const [, response] = await arrived
    return async () => {
      asked.destroy()
      await once(response, 'close')
    }
  }

  test('are told when to come back, until one of them has gone', async () => {
    const url = await start(1)
    const breakOff = await ask(`${url}/slow`)
    const refused = await fetch(`${url}/quick`)
    expect(refused.status).toBe(503)
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
    expect((await fetch(`${url}/healthz`)).status).toBe(200)
    await breakOff()
    expect((await fetch(`${url}/quick`)).status).toBe(200)
  })
})
