import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { StoreKind } from '../../databases/database.ts'
import { LinkedHarness, type LinkedNumber } from '../../linked-harness.ts'

const NOBODY = '15005550001'
const PER_DAY = 20
const LOOK_UP = { stanza: 'iq', direction: 'in', attrs: { xmlns: 'usync' } } as const

const numberAt = (index: number) => `${5_511_987_680_000 + index}`

describe.each<StoreKind>(['sqlite', 'postgres'])('the number check, on %s', store => {
  let harness: LinkedHarness
  let number: LinkedNumber

  beforeAll(async () => {
    harness = await LinkedHarness.open(store, { env: { NUMBER_CHECKS_PER_DAY: `${PER_DAY}` } })
    number = await harness.link()
  })
  afterAll(async () => harness?.[Symbol.asyncDispose]())

  async function check(numbers: readonly string[]) {
    const response = await fetch(`${harness.service.url}/v1/numbers/check`, {
      method: 'POST',
      headers: { authorization: `Bearer ${number.instance.token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ numbers }),
    })
    // biome-ignore lint/suspicious/noExplicitAny: tests compare parts of it
    return { status: response.status, headers: response.headers, body: (await response.json()) as any }
  }

  test('reports who is on WhatsApp, in the order of the call, and asks WhatsApp once for each number', async () => {
    const { rule } = await harness.network.misbehave({ kind: 'rule', rule: { when: LOOK_UP, do: { delayMs: 0 } } })
    const asked = async () => (await harness.network.scenario()).rules.find(({ id }) => id === rule)?.fitted
    const numbers = [numberAt(1), NOBODY, numberAt(2), numberAt(1)]
    const expected = numbers.map(one =>
      one === NOBODY ? { number: one, exists: false, chat: null } : { number: one, exists: true, chat: one },
    )
    expect(await check(numbers)).toMatchObject({ status: 200, body: { data: expected } })
    const before = await asked()
    expect(await check(numbers)).toMatchObject({ status: 200, body: { data: expected } })
    expect(await asked()).toBe(before)
  })

  test('answers null in time if WhatsApp does not answer, and others are not delayed', async () => {
    const { rule } = await harness.network.misbehave({ kind: 'rule', rule: { when: LOOK_UP, do: 'drop' } })
    const startedAt = performance.now()
    const silent = Promise.all([check([numberAt(3), numberAt(1)]), check([numberAt(3)])])
    expect((await check([numberAt(2)])).body.data).toMatchObject([{ exists: true }])
    expect(performance.now() - startedAt).toBeLessThan(5_000)
    const [first, second] = await silent
    expect(performance.now() - startedAt).toBeLessThan(10_000)
    expect(first?.body.data).toMatchObject([{ exists: null, chat: null }, { exists: true }])
    expect(second?.body.data).toMatchObject([{ exists: null }])
    await harness.network.misbehave({ kind: 'remove_rule', id: rule! })
  })

  test('refuses more unknown numbers than the budget allows, even after a crash, and answers for the known ones', async () => {
    // Four numbers were unknown so far.
    const rest = Array.from({ length: PER_DAY - 4 }, (_, index) => numberAt(100 + index))
    expect((await check([...rest, numberAt(900)])).body.error.code).toBe('lookup_budget_spent')
    expect((await check(rest)).body.data.every(({ exists }: { exists: boolean }) => exists)).toBe(true)
    await harness.kill()
    await harness.service.admin.untilState(number.id, 'connected')
    const refused = await check([numberAt(900)])
    expect(refused).toMatchObject({ status: 429, body: { error: { code: 'lookup_budget_spent' } } })
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
    expect((await check(rest)).status).toBe(200)
  })

  test('answers from stored look-ups while the number is not connected', async () => {
    await harness.service.admin.logout(number.id)
    await harness.service.admin.untilState(number.id, 'logged_out')
    expect((await check([numberAt(1), numberAt(901)])).body.data).toMatchObject([{ exists: true }, { exists: null }])
  })

  test.each([
    ['no list', {}],
    ['an empty list', { numbers: [] }],
    ['too many numbers', { numbers: Array.from({ length: 51 }, (_, index) => numberAt(index)) }],
    ['a number with a plus sign', { numbers: ['+5511987680001'] }],
    ['a group', { numbers: ['120363000000000901@g.us'] }],
  ])('refuses %s', async (_, body) => {
    const { status, body: answer } = await check((body as { numbers: string[] }).numbers)
    expect([status, answer.error.code]).toEqual([400, 'invalid_request'])
  })
})
