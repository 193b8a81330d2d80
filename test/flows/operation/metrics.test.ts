import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { createDatabase, type TestDatabase } from '../../databases/database.ts'
import { ONE_STORE } from '../../databases/one-store.ts'
import { Receiver } from '../../receiver.ts'
import { Service } from '../../service.ts'
import { until } from '../../until.ts'

const NUMBER = '5511987654321'
const SECRET = 'confidential-path-of-a-webhook'

describe.each(ONE_STORE)('metrics on %s', kind => {
  let database: TestDatabase
  let service: Service
  let receiver: Receiver
  let metricsUrl: string
  let instance: { id: string; token: string }

  async function scrape(): Promise<string> {
    const response = await fetch(metricsUrl)
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toContain('text/plain; version=0.0.4')
    return response.text()
  }

  async function sample(name: string): Promise<number> {
    const line = (await scrape()).split('\n').find(text => text.startsWith(`${name} `))
    if (line === undefined) throw new Error(`There is no ${name}.`)
    return Number(line.slice(name.length))
  }

  beforeAll(async () => {
    database = await createDatabase(kind, inject('postgresUrl'))
    service = await new Service({ env: { ...database.env, SANDBOX: 'on', METRICS_PORT: '0' } }).start()
    metricsUrl = /Metrics +(\S+)/.exec(service.output)?.[1] ?? ''
    receiver = await new Receiver().listen()
    instance = await service.admin.createConnected()
    await service.instance(instance.id, instance.token).setWebhook(`${receiver.url}/${SECRET}`)
    receiver.answerWith(({ index }) => ({ kind: 'status', status: index === 0 ? 500 : 200 }))
    await service.instance(instance.id, instance.token).send(NUMBER, 'hello')
    await receiver.waitFor(4)
  })
  afterAll(async () => {
    await service?.dispose()
    await receiver?.close()
    await database?.dispose()
  })

  test('count every step of one message', async () => {
    await until('the last attempt to be recorded', async () => {
      return (await scrape()).includes('pombal_store_write_seconds_count{operation="deliveries.attempt"} 4')
    })
    expect(await sample('pombal_deliveries_ended_total{state="delivered"}')).toBe(3)
    expect(await sample('pombal_webhook_attempts_total{outcome="5xx"}')).toBe(1)
    expect(await sample('pombal_webhook_attempts_total{outcome="2xx"}')).toBe(3)
    expect(await sample('pombal_webhook_attempt_lateness_seconds_count{attempt="retry"}')).toBe(1)
    expect(await sample('pombal_store_write_seconds_count{operation="messages.accept"}')).toBe(1)
    expect(await sample('pombal_instances_owned')).toBe(1)
    expect(await sample('pombal_store_up')).toBe(1)
    expect(await sample('nodejs_eventloop_lag_p99_seconds')).toBeGreaterThan(0)
    await until('the totals to be read anew', async () => (await sample('pombal_connections{state="connected"}')) === 1)
    expect(await sample('pombal_store_bytes')).toBeGreaterThan(10_000)
  })

  test('name no instance, number, address or secret', async () => {
    const text = await scrape()
    for (const secret of [instance.id, instance.token, service.adminKey, NUMBER, SECRET, receiver.url]) {
      expect(text).not.toContain(secret)
    }
  })

  test('are one page: any other path or method is refused', async () => {
    expect((await fetch(metricsUrl.replace('/metrics', '/'))).status).toBe(404)
    expect((await fetch(metricsUrl, { method: 'POST', body: 'x' })).status).toBe(405)
  })

  test('cannot be blocked by idle connections, or by a scrape that does not read its answer', async () => {
    const port = Number(new URL(metricsUrl).port)
    const sockets = Array.from({ length: 100 }, () => connect(port, '127.0.0.1').on('error', () => undefined))
    for (const socket of sockets) socket.pause().write('GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(20))
    await Promise.all(sockets.map(socket => new Promise(resolve => socket.once('connect', resolve))))
    const idle = Array.from({ length: 100 }, () => connect(port, '127.0.0.1').on('error', () => undefined))
    await Promise.all(idle.map(socket => new Promise(resolve => socket.once('connect', resolve))))
    for (let n = 0; n < 3; n += 1) expect(await scrape()).toContain('pombal_store_up 1')
    for (const socket of [...sockets, ...idle]) socket.destroy()
  })

  test('can be read on the API’s own port with the admin key only', async () => {
    const url = `${service.url}/metrics`
    expect((await fetch(url)).status).toBe(401)
    expect((await fetch(url, { headers: { authorization: `Bearer ${instance.token}` } })).status).toBe(401)
    const response = await fetch(url, { headers: { authorization: `Bearer ${service.adminKey}` } })
    expect(response.status).toBe(200)
    expect(await response.text()).toContain('pombal_store_up 1')
  })

  test("cannot be reached by webhooks: the port is one of Pombal's own", async () => {
    const client = service.instance(instance.id, instance.token)
    await expect(client.setWebhook(metricsUrl)).rejects.toMatchObject({ code: 'invalid_request' })
  })
})

test('a port that is taken is reported with the name of its setting', async () => {
  const receiver = await new Receiver().listen()
  const service = new Service({ env: { METRICS_PORT: `${receiver.port}` } })
  service.boot()
  const { code } = await service.exited()
  expect(code).toBe(1)
  expect(service.output).toContain(`Port ${receiver.port} of 127.0.0.1 is in use: set METRICS_PORT to a free port.`)
  await service.dispose()
  await receiver.close()
})
