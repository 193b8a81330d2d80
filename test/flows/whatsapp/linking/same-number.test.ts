import { expect, test } from 'vitest'
import { LinkedHarness } from '../../../linked-harness.ts'
import { until } from '../../../until.ts'
import { ApiHarness } from '../../api/harness.ts'
import { createPerson } from '../../api/people/people.ts'

test('two instances that are linked to one number name each other, even after a kill, until one is unlinked', async () => {
  await using harness = await LinkedHarness.open('sqlite')
  const { admin } = harness.service
  const link = async (name: string) => {
    const { id } = await admin.createInstance('whatsapp', name)
    await admin.connect(id)
    const { phone } = await harness.network.scanQr(await harness.showQr(id), 'the phone')
    await admin.untilState(id, 'connected')
    return { id, phone }
  }
  const first = await link('First')
  expect((await admin.connection(first.id)).sameNumber).toEqual([])
  // The simulated phone has one linked device, so the first instance must not be online when the second is linked.
  await harness.network.misbehave({ kind: 'stream_error', account: first.phone, conflict: 'replaced' })
  await admin.untilState(first.id, 'stopped')
  const second = await link('Second')
  expect(second.phone).toBe(first.phone)
  expect((await admin.connection(second.id)).sameNumber).toEqual([{ id: first.id, name: 'First' }])
  expect((await admin.connection(first.id)).sameNumber).toEqual([{ id: second.id, name: 'Second' }])
  await harness.kill()
  expect((await harness.service.admin.connection(first.id)).sameNumber).toEqual([{ id: second.id, name: 'Second' }])
  await harness.service.admin.logout(second.id)
  await until('the first to be alone', async () => {
    const { sameNumber } = await harness.service.admin.connection(first.id)
    return sameNumber.length === 0
  })
})

test('somebody who may not see the other instance does not learn of it', async () => {
  await using api = await ApiHarness.start()
  const [own, foreign] = [await api.createInstance('whatsapp', 'Own'), await api.createInstance('whatsapp', 'Foreign')]
  for (const { id } of [own, foreign]) await api.record(id, { state: 'connected', phone: '5511977770000' })
  const person = await createPerson(api, 'operator', [own.id])
  const path = `/admin/v1/instances/${own.id}/connection`
  const read = async (headers: Record<string, string>) => (await api.call({ path, headers })).body.data.sameNumber
  expect(await read(person.headers)).toEqual([])
  const everybody = await createPerson(api, 'viewer')
  expect(await read(everybody.headers)).toEqual([{ id: foreign.id, name: 'Foreign' }])
})

test('somebody sees their other instance even if ten older ones of the number are not theirs', async () => {
  await using api = await ApiHarness.start()
  const link = async (name: string): Promise<string> => {
    const { id } = await api.createInstance('whatsapp', name)
    await api.record(id, { state: 'connected', phone: '5511977770000' })
    return id
  }
  for (let count = 0; count < 10; count += 1) await link('Foreign')
  const [own, other] = [await link('Own'), await link('Other')]
  const { headers } = await createPerson(api, 'viewer', [own, other])
  const { body } = await api.call({ path: `/admin/v1/instances/${own}/connection`, headers })
  expect(body.data.sameNumber).toEqual([{ id: other, name: 'Other' }])
})
