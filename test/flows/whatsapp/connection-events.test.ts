import { expect, test } from 'vitest'
import { until } from '../../until.ts'
import { WhatsappHarness } from './harness.ts'

/** The events of an instance (contract §4), through the real driver. */

async function eventsOf(harness: WhatsappHarness, instanceId: string) {
  const page = (await harness.store.events.readFeed(instanceId, { limit: 100, maxBytes: 1 << 20 }))!
  return page.events
    .filter(({ kind }) => kind.startsWith('instance.'))
    .map(
      ({ body }) =>
        JSON.parse(body) as { event: string; data: { cause: string; reason: string; phone: string | null } },
    )
}

test('linking, a cut connection, a restart, a restriction and a logout are reported once each, or not at all', async () => {
  await using harness = await WhatsappHarness.open()
  const { id, phone, connection } = await harness.link()
  const kinds = async () => (await eventsOf(harness, id)).map(({ event }) => event)
  expect(await kinds()).toEqual(['instance.linking', 'instance.connected'])

  harness.line.cut()
  await harness.reaches(id, 'reconnecting')
  await harness.reaches(id, 'connected')
  await harness.stop(connection)
  await harness.connect(id, { scan: false })
  await harness.reaches(id, 'connected')
  expect(await kinds()).toEqual(['instance.linking', 'instance.connected'])

  await harness.network.misbehave({ kind: 'restrict', account: phone, seconds: 3_600 })
  await until('the restriction', async () => (await kinds()).length === 3)
  await harness.network.misbehave({ kind: 'restrict', account: phone, seconds: 1 })
  await until('its end', async () => (await kinds()).length === 4)

  await harness.network.unlink(phone)
  await harness.reaches(id, 'logged_out')
  const events = await eventsOf(harness, id)
  expect(events.map(({ event, data }) => [event, data.cause])).toEqual([
    ['instance.linking', 'scan_qr_code'],
    ['instance.connected', 'connected'],
    ['instance.restricted', 'restricted'],
    ['instance.connected', 'connected'],
    ['instance.logged_out', 'logged_out_by_phone'],
  ])
  for (const { data } of events) expect(data.reason).not.toBe('')
  expect(events.at(-1)!.data.phone).toBe(phone)
})
