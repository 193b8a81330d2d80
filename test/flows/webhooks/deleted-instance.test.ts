/** What the endpoints of a deleted instance receive, with and without a kill -9 after its deletion. */
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { createDatabase, type TestDatabase } from '../../databases/database.ts'
import { ONE_STORE } from '../../databases/one-store.ts'
import { eventOf, Receiver } from '../../receiver.ts'
import { Service } from '../../service.ts'
import { until } from '../../until.ts'

const DAY_MS = 86_400_000

/** What a call has created. */
interface Made {
  id: string
}

describe.each(ONE_STORE)('the deletion of an instance on %s', store => {
  let database: TestDatabase
  let service: Service
  let receiver: Receiver
  beforeAll(async () => {
    database = await createDatabase(store, inject('postgresUrl'))
    service = await new Service({ env: database.env }).start()
    receiver = await new Receiver().listen()
  })
  afterAll(async () => {
    await service?.dispose()
    await receiver?.close()
    await database?.dispose()
  })

  test.each([{ killed: false }, { killed: true }])(
    'reports every queued message and command to each endpoint that receives their events (killed: $killed)',
    async ({ killed }) => {
      const { id, token } = await service.admin.createConnected()
      const ask = async (method: string, path: string, body?: object) => {
        const headers = { authorization: `Bearer ${token}`, ...(body && { 'content-type': 'application/json' }) }
        const response = await fetch(`${service.url}/v1${path}`, {
          method,
          headers,
          ...(body && { body: JSON.stringify(body) }),
        })
        expect(response.ok).toBe(true)
        const answer = response.status === 204 ? {} : await response.json()
        return (answer as { data: Made }).data
      }
      const urlOf = (name: string) => `${receiver.url}/${id}/${name}`
      const endpoints = `/webhooks/${id}/endpoints`
      await ask('PUT', `/webhooks/${id}`, { url: urlOf('default') })
      await ask('POST', endpoints, { url: urlOf('all') })
      await ask('POST', endpoints, { url: urlOf('paused'), events: ['message.failed'], active: false })
      const { id: deleted } = await ask('POST', endpoints, { url: urlOf('deleted') })
      await ask('DELETE', `${endpoints}/${deleted}`)
      const sendAt = new Date(Date.now() + DAY_MS).toISOString()
      const message = await ask('POST', '/messages/text', { to: '5511987654321', text: 'later', sendAt })
      const command = await ask('PUT', `/messages/${message.id}/reaction`, { emoji: '👍' })

      await service.admin.deleteInstance(id)
      if (killed) {
        await service.kill('SIGKILL')
        await database.expireLeases()
        await service.start()
      }
      await until('the rows to be erased', async () => (await database.countRowsOf(id, service.dataDir)) === 0)
      const receivedBy = (name: string) => {
        const events = receiver.requests.filter(({ path }) => path.endsWith(`/${id}/${name}`)).map(eventOf)
        return events.flatMap(({ event, data }) =>
          [message.id, command.id].includes(data.id) ? [[event, (data['error'] as { code: string }).code]] : [],
        )
      }
      const ofMessage = ['message.failed', 'instance_deleted']
      expect(receivedBy('default')).toEqual([ofMessage])
      expect(receivedBy('paused')).toEqual([ofMessage])
      expect(receivedBy('all').toSorted()).toEqual([['command.failed', 'instance_deleted'], ofMessage])
      expect(receivedBy('deleted')).toEqual([])
    },
  )
})
