import { expect, inject, onTestFinished, test } from 'vitest'
import { createDatabase } from '../../databases/database.ts'
import { ONE_STORE } from '../../databases/one-store.ts'
import { Receiver } from '../../receiver.ts'
import { Service } from '../../service.ts'
import { until } from '../../until.ts'

const CONTACT = '5511987654321'
const ATTEMPTS = 3

test.each(ONE_STORE)(
  'the log shows the way of a message under its ID: accepted, prepared, sent, receipts, attempts (%s)',
  async store => {
    const database = await createDatabase(store, inject('postgresUrl'))
    const service = await new Service({ env: { ...database.env, SANDBOX: 'on', LOG_LEVEL: 'debug' } }).start()
    const receiver = await new Receiver().listen()
    onTestFinished(async () => {
      await service.dispose()
      await receiver.close()
      await database.dispose()
    })
    const { id, token } = await service.admin.createConnected()
    const instance = service.instance(id, token)
    await instance.setWebhook(receiver.url)
    const { id: messageId } = await instance.send(CONTACT, 'hello', 'a-key')
    const { id: other } = await instance.send(CONTACT, 'another')
    await instance.send(CONTACT, 'hello', 'a-key')
    const linesOf = (message: string) => service.logLines.filter(line => line['messageId'] === message)
    const attempted = (message: string) => linesOf(message).filter(({ msg }) => msg === 'delivery.attempted')
    await until('the attempts of both to be logged', () =>
      [messageId, other].every(message => attempted(message).length === ATTEMPTS),
    )
    const lines = linesOf(messageId)
    for (const line of lines) expect(line).toMatchObject({ instanceId: id })
    const named = (msg: string) => lines.filter(line => line.msg === msg)
    expect(named('request.answered')).toMatchObject([
      { route: '/v1/messages/text', status: 202 },
      { route: '/v1/messages/text', status: 202 },
    ])
    expect(named('message.prepared')).toHaveLength(1)
    expect(named('message.sent')).toHaveLength(1)
    expect(named('receipt.recorded')).toMatchObject([
      { reached: 'delivered', outcome: 'recorded' },
      { reached: 'read', outcome: 'recorded' },
    ])
    const kinds = attempted(messageId).map(({ kind, status }) => [kind, status])
    expect(kinds).toEqual(['message.sent', 'message.delivered', 'message.read'].map(kind => [kind, 200]))
  },
)
