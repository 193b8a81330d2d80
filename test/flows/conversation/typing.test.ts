import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ONE_STORE } from '../../databases/one-store.ts'
import { until } from '../../until.ts'
import { Talking } from './harness.ts'

describe.each(ONE_STORE)('typing, on %s', store => {
  let talking: Talking
  beforeAll(async () => {
    talking = await Talking.open(store)
  })
  afterAll(async () => talking?.[Symbol.asyncDispose]())

  const type = (chat: string, seconds: unknown) =>
    talking.call('PUT', `/chats/${chat}/typing`, { seconds } as { seconds: number })
  /** Waits until the contact's phone shows this about the instance, in the group or in their chat. */
  const shows = (number: string, state: string, group?: string) =>
    until(`${number} to see ${state}`, async () => {
      const all = await talking.harness.network.typing(number)
      return all.some(one => one.from === talking.number.phone && one.group === group && one.state === state)
    })

  test('is shown to the contact for as long as the caller says', async () => {
    const to = '5511987655001'
    const answer = await type(to, 10)
    expect([answer.status, answer.body]).toEqual([202, { data: { chat: to, seconds: 10 } }])
    await shows(to, 'composing')
    await shows(to, 'paused')
  })

  test('goes to a person by LID and to the members of a group, and ends when the caller says so', async () => {
    const [from, group] = ['5511987655002', '120363000000000655@g.us']
    const { lid } = await talking.receive(from, 'oi', { group })
    for (const [chat, where] of [
      [String(lid), undefined],
      [group, group],
    ] as const) {
      await type(chat, 60)
      await shows(from, 'composing', where)
      await type(chat, 0)
      await shows(from, 'paused', where)
    }
  })

  test.each([
    ['a chat that is not an address', 'ana', 5, 'invalid_phone_number'],
    ['a number that is almost right', encodeURIComponent('+55 11 98765-5003'), 5, 'invalid_phone_number'],
    ['a time that is too long', '5511987655003', 61, 'invalid_request'],
    ['a negative time', '5511987655003', -1, 'invalid_request'],
    ['a fraction of a second', '5511987655003', 0.5, 'invalid_request'],
    ['no time', '5511987655003', undefined, 'invalid_request'],
  ])('is refused for %s', async (_, chat, seconds, code) => {
    const { status, body } = await type(chat, seconds)
    expect([status, body.error.code]).toEqual([400, code])
    if (code === 'invalid_phone_number') expect(body.error.message).toMatch(/^"chat" must/)
  })
})
