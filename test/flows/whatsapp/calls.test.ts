import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ApiError } from '../../api-client.ts'
import { STORES } from '../../databases/database.ts'
import { LinkedHarness, type LinkedNumber } from '../../linked-harness.ts'
import { newSeed, Random } from '../../rig/random.ts'
import { until } from '../../until.ts'

const TEXT = 'We cannot take calls here. Please write to us.'
const GROUP = '120363025246125486@g.us'

/** @returns once the call has this state */
async function untilCall(harness: LinkedHarness, { phone }: LinkedNumber, id: string, state: string): Promise<void> {
  await until(`call ${id} to be ${state}`, async () =>
    (await harness.network.calls(phone)).some(call => call.id === id && call.state === state),
  )
}

const textsOf = async (harness: LinkedHarness, contact: string) =>
  (await harness.network.inbox(contact)).map(({ text, copies }) => [text, copies])

describe('calls to an instance', () => {
  let harness: LinkedHarness
  let number: LinkedNumber
  beforeAll(async () => {
    harness = await LinkedHarness.open('sqlite')
    number = await harness.link()
  })
  afterAll(async () => harness?.[Symbol.asyncDispose]())

  const call = async (from: string, more: object = {}) =>
    (await harness.network.callAs({ from, to: number.phone, ...more })).id

  test('ring, unless the operator rejects them; then they end, and the caller gets the text once', async () => {
    const { admin } = harness.service
    expect(await admin.calls(number.id)).toEqual({ reject: false, text: null })
    const contact = '5511987660001'
    const ringing = await call(contact)
    await harness.sendAndRead(number)
    expect(await admin.setCalls(number.id, { reject: true, text: TEXT })).toEqual({ reject: true, text: TEXT })
    const first = await call(contact)
    await untilCall(harness, number, first, 'rejected')
    await until('the text', async () => (await textsOf(harness, contact)).length === 1)
    const second = await call(contact, { video: true })
    await untilCall(harness, number, second, 'rejected')
    // Another text shows that nothing else is on its way.
    await admin.setCalls(number.id, { reject: true, text: 'Changed.' })
    await untilCall(harness, number, await call(contact), 'rejected')
    await until('the changed text', async () => (await textsOf(harness, contact)).length === 2)
    expect(await textsOf(harness, contact)).toEqual([
      [TEXT, 1],
      ['Changed.', 1],
    ])
    await untilCall(harness, number, ringing, 'ringing')
    const listed = await admin.listMessages(number.id, `?to=${contact}`)
    expect(listed.map(({ to, text }) => [to, text])).toEqual([
      [contact, 'Changed.'],
      [contact, TEXT],
    ])
  })

  test('are rejected without a text if there is none, and in a group', async () => {
    const { admin } = harness.service
    await harness.network.joinGroup(GROUP, ['5511987660002', number.phone])
    await admin.setCalls(number.id, { reject: true, text: TEXT })
    await untilCall(harness, number, await call('5511987660002', { group: GROUP }), 'rejected')
    await admin.setCalls(number.id, { reject: true })
    await untilCall(harness, number, await call('5511987660003'), 'rejected')
    await admin.setCalls(number.id, { reject: true, text: TEXT })
    await untilCall(harness, number, await call('5511987660004'), 'rejected')
    await until('the text', async () => (await textsOf(harness, '5511987660004')).length === 1)
    for (const silent of ['5511987660002', '5511987660003']) expect(await textsOf(harness, silent)).toEqual([])
  })

  test.each([
    ['a text without a rejection', { reject: false, text: TEXT }],
    ['an empty text', { reject: true, text: '' }],
    ['a text that no message may have', { reject: true, text: 'a\u0000b' }],
    ['a text that is too long', { reject: true, text: 'a'.repeat(65_537) }],
    ['no rejection', { text: null }],
    ['a rejection in words', { reject: 'yes' }],
  ])('cannot be set to %s', async (_, body) => {
    const error = await harness.service.admin.setCalls(number.id, body).then(
      () => null,
      caught => caught,
    )
    expect(error).toBeInstanceOf(ApiError)
    expect([error.status, error.code]).toEqual([400, 'invalid_request'])
  })
})

describe.each(STORES)('kill -9 around a call, on %s', store => {
  test('neither loses nor duplicates the text, and the call is rejected in the end', async () => {
    await using harness = await LinkedHarness.open(store)
    const number = await harness.link()
    await harness.service.admin.setCalls(number.id, { reject: true, text: TEXT })
    const seed = Number(process.env['CRASH_SEED'] ?? newSeed())
    console.log(`kills around calls: CRASH_SEED=${seed}`)
    const random = new Random(seed)
    for (let round = 0; round < 6; round += 1) {
      const contact = `551198766010${round}`
      const { id } = await harness.network.callAs({ from: contact, to: number.phone })
      await sleep(random.between(0, 60))
      await harness.kill()
      await untilCall(harness, number, id, 'rejected')
      await until(`the text to ${contact}`, async () => (await textsOf(harness, contact)).length > 0)
    }
    // An orderly restart delivers everything that is still pending.
    await harness.service.restart()
    await harness.sendAndRead(number)
    for (let round = 0; round < 6; round += 1)
      expect((await textsOf(harness, `551198766010${round}`)).map(([text]) => text)).toEqual([TEXT])
  })
})
