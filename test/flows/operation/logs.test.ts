import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Receiver } from '../../receiver.ts'
import { Service } from '../../service.ts'
import { until } from '../../until.ts'

const ECHO = '15005550005'
const GROUP = '120363000000000042@g.us'

/** `secret` in every encoding that a logger may print. */
function encodingsOf(secret: string): string[] {
  const bytes = Buffer.from(secret)
  const base64 = bytes.toString('base64').replace(/=+$/, '')
  return [secret, JSON.stringify(secret).slice(1, -1), base64, bytes.toString('hex'), bytes.toJSON().data.join(',')]
}

describe('the log of the service at the most detailed level', () => {
  const secrets = new Map<string, string>([
    ['the text of a message', 'confidential-outgoing-text'],
    ['the text of a group message', 'confidential-group-text'],
    ['the text of an incoming message', 'confidential-incoming-text'],
    ['an idempotency key', 'confidential-idempotency-key'],
    ['a wrong token', 'pmb_confidential-wrong-token'],
  ])
  let service: Service
  let receiver: Receiver

  beforeAll(async () => {
    service = await new Service({ env: { LOG_LEVEL: 'trace' } }).start()
    receiver = await new Receiver().listen()
    const { id, token } = await service.admin.createConnected()
    const instance = service.instance(id, token)
    const { secret } = await instance.setWebhook(receiver.url)
    secrets.set('the token', token).set('the webhook secret', secret)
    secrets.set('the webhook key', secret.replace('whsec_', '')).set('the admin key', service.adminKey)
    secrets.set('the master key', readFileSync(join(service.dataDir, 'master.key'), 'utf8').trim())

    await instance.send(ECHO, secrets.get('the text of a message') ?? '', secrets.get('an idempotency key'))
    await instance.send(GROUP, secrets.get('the text of a group message') ?? '')
    const incoming = secrets.get('the text of an incoming message') ?? ''
    await service.admin.writeAsContact(id, { from: '5511987654321', text: incoming })
    const intruder = service.instance(id, secrets.get('a wrong token') ?? '')
    await expect(intruder.send(ECHO, 'hello')).rejects.toMatchObject({ code: 'invalid_token' })
    await receiver.waitFor(8)
    await service.restart()
    await service.admin.untilState(id, 'connected')
    await service.admin.deleteInstance(id)
    await until('the instance to go', () => service.logLines.some(({ msg }) => msg === 'instance.erased'))
    await service.kill('SIGTERM')
  })

  afterAll(async () => {
    await service?.dispose()
    await receiver?.close()
  })

  test('reports sent messages, delivery attempts and the stop of the service', () => {
    const told = new Set(service.logLines.map(({ msg }) => msg))
    for (const fact of ['message.sent', 'delivery.attempted', 'app.stopped']) expect(told).toContain(fact)
  })

  test('is one JSON object per line, and standard output contains nothing else', () => {
    const lines = service.wholeLog.split('\n')
    expect(lines.pop()).toBe('')
    for (const line of lines) expect(() => JSON.parse(line), line).not.toThrow()
  })

  test('contains no secret, token, key or message text in any encoding', () => {
    const output = service.wholeOutput.toLowerCase()
    for (const [what, secret] of secrets) {
      for (const encoding of encodingsOf(secret)) {
        expect(output.includes(encoding.toLowerCase()), `${what} is in the log as ${encoding}`).toBe(false)
      }
    }
  })

  test('contains no key of a WhatsApp session', () => {
    expect(service.wholeOutput).not.toMatch(/privKey|privateKey|rootKey|chainKey|advSecretKey|<Buffer /)
  })
})
