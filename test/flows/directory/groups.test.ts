import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { StoreKind } from '../../databases/database.ts'
import { LinkedHarness, type LinkedNumber } from '../../linked-harness.ts'
import { eventOf } from '../../receiver.ts'
import { until } from '../../until.ts'

const ANA = '5511987660001'
const BIA = '5511987660002'

/** Calls `/v1` of a linked number. */
async function call(harness: LinkedHarness, { instance }: LinkedNumber, path: string) {
  const response = await fetch(`${harness.service.url}/v1${path}`, {
    headers: { authorization: `Bearer ${instance.token}` },
  })
  // biome-ignore lint/suspicious/noExplicitAny: tests compare parts of it
  return { status: response.status, body: (await response.json()) as any }
}

describe.each<StoreKind>(['sqlite', 'postgres'])('the groups of a number, on %s', store => {
  let harness: LinkedHarness
  let number: LinkedNumber
  let counting: { participating: number; query: number }

  beforeAll(async () => {
    harness = await LinkedHarness.open(store)
    const count = async (to: Record<string, string>) => {
      const rule = {
        when: { stanza: 'iq', direction: 'in', attrs: { xmlns: 'w:g2', type: 'get', ...to } },
        do: { delayMs: 0 },
      }
      return (await harness.network.misbehave({ kind: 'rule', rule } as never)).rule!
    }
    counting = { participating: await count({ to: '@g.us' }), query: await count({}) }
    number = await harness.link()
  })
  afterAll(async () => harness?.[Symbol.asyncDispose]())

  /** How often WhatsApp was asked for all groups, and about one group. */
  async function queries() {
    const { rules } = await harness.network.scenario()
    const fitted = (id: number) => rules.find(rule => rule.id === id)?.fitted ?? 0
    const all = fitted(counting.participating)
    return { all, single: fitted(counting.query) - all }
  }

  async function groups(search = '') {
    const { body } = await call(
      harness,
      number,
      `/groups?search=${encodeURIComponent(search)}`.replace(/\?search=$/, ''),
    )
    return body.data as { id: string; subject: string; memberCount: number; canSend: boolean; isAdmin: boolean }[]
  }

  test('a group is listed when the number joins, changes with its members, and costs one query however much is sent', async () => {
    const group = '120363000000000901@g.us'
    await until('the first list', async () => (await queries()).all === 1)
    await harness.network.joinGroup(group, [number.phone, BIA])
    await until('the group', async () => (await groups('group')).some(({ id }) => id === group))
    const [before] = (await groups()).filter(({ id }) => id === group)
    expect(before).toMatchObject({ subject: 'Group 0901', canSend: true, isAdmin: false })
    await harness.network.joinGroup(group, [number.phone, ANA])
    await until('the new member', async () => {
      const { body } = await call(harness, number, `/groups/${group}`)
      return body.data.members.some(({ phone }: { phone: string }) => phone === ANA)
    })
    const asked = await queries()
    expect(asked.single).toBeLessThanOrEqual(1)
    for (let texts = 0; texts < 5; texts += 1) {
      const { id } = await number.instance.send(group, `grupo-passo-${texts}`)
      await until('it to be sent', async () =>
        ['sent', 'delivered', 'read'].includes((await number.instance.message(id)).status),
      )
    }
    // Nothing is asked again after a crash either.
    await harness.kill()
    await harness.service.admin.untilState(number.id, 'connected')
    const { id } = await number.instance.send(group, 'grupo-depois-da-queda')
    await until('it to be sent', async () =>
      ['sent', 'delivered', 'read'].includes((await number.instance.message(id)).status),
    )
    expect((await groups()).map(({ id }) => id)).toContain(group)
    expect(await queries()).toEqual(asked)
  })

  test('a member is named as a contact is', async () => {
    const group = '120363000000000902@g.us'
    await harness.network.joinGroup(group, [number.phone, BIA])
    await harness.network.writeAs({ from: BIA, to: number.phone, group, text: 'grupo-ola-da-bia', name: 'Bia Araújo' })
    const bia = await until('her name', async () => {
      const { body } = await call(harness, number, `/groups/${group}`)
      const members = (body.data?.members ?? []) as { phone: string; name: string | null; role: string }[]
      return members.find(({ phone, name }) => phone === BIA && name !== null)
    })
    expect(bia).toMatchObject({ name: 'Bia Araújo', role: 'member' })
    const { body } = await call(harness, number, '/contacts?search=ARAUJO')
    expect(body.data).toMatchObject([
      { chat: BIA, phone: BIA, pushName: 'Bia Araújo', name: null, lastMessageAt: null },
    ])
  })

  test('changes are posted to an endpoint that subscribes to them, and to no other', async () => {
    const group = '120363000000000903@g.us'
    const response = await fetch(`${harness.service.url}/v1/webhooks/${number.id}/endpoints`, {
      method: 'POST',
      headers: { authorization: `Bearer ${number.instance.token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ url: `${harness.receiver.url}/groups`, events: ['group.*'] }),
    })
    expect(response.status).toBe(201)
    const posted = () =>
      harness.receiver.requests
        .map(request => ({ path: request.path, ...eventOf(request) }))
        .filter(({ event, data }) => event.startsWith('group.') && data['group'] === group)
    await harness.network.joinGroup(group, [number.phone, BIA])
    await until('the group to be known', async () => (await call(harness, number, `/groups/${group}`)).status === 200)
    await harness.network.joinGroup(group, [number.phone, ANA])
    const [changed] = await until('the event', () => posted().length > 0 && posted())
    expect(changed).toMatchObject({
      event: 'group.changed',
      data: { group, changed: ['members'], added: [{ phone: ANA }] },
    })
    expect(posted().every(({ path }) => path.endsWith('/groups'))).toBe(true)
  })

  test('what people change in a group is in the directory and in events, until the number is removed from it', async () => {
    const endpoint = { url: `${harness.receiver.url}/life`, events: ['group.*'] }
    const created = await fetch(`${harness.service.url}/v1/webhooks/${number.id}/endpoints`, {
      method: 'POST',
      headers: { authorization: `Bearer ${number.instance.token}`, 'content-type': 'application/json' },
      body: JSON.stringify(endpoint),
    })
    expect(created.status).toBe(201)
    const group = await harness.network.createGroup({ by: BIA, subject: 'Almoço', members: [ANA, number.phone] })
    const events = () =>
      harness.receiver.requests
        .filter(({ path }) => path.endsWith('/life'))
        .map(eventOf)
        .filter(({ data }) => data['group'] === group)
    const changed = (what: string) =>
      until(`a change of ${what}`, () => events().find(({ data }) => (data['changed'] as string[])?.includes(what)))
    const joined = await until('the event', () => events().find(({ event }) => event === 'group.joined'))
    expect(joined.data).toEqual({ group, subject: 'Almoço', memberCount: 3, canSend: true, isAdmin: false })
    await harness.network.changeGroup(group, { subject: 'Jantar' })
    await changed('subject')
    await harness.network.changeGroup(group, { description: 'Às oito' })
    await changed('description')
    await harness.network.changeGroup(group, { announcement: true })
    expect((await changed('canSend')).data).toMatchObject({ canSend: false })
    await harness.network.changeGroup(group, { promote: [number.phone] })
    expect((await changed('roles')).data).toMatchObject({ promoted: [{ phone: number.phone }], isAdmin: true })
    const { body } = await call(harness, number, `/groups/${group}`)
    expect(body.data).toMatchObject({ subject: 'Jantar', description: 'Às oito', canSend: true, isAdmin: true })
    expect(Date.parse(body.data.asOf)).toBeGreaterThan(0)
    expect(body.data.members.map(({ phone, role }: { phone: string; role: string }) => [phone, role])).toEqual(
      expect.arrayContaining([
        [BIA, 'owner'],
        [ANA, 'member'],
        [number.phone, 'admin'],
      ]),
    )
    expect((await groups('jantar')).map(({ id }) => id)).toEqual([group])
    const pages: string[] = []
    for (let cursor = ''; ; ) {
      const page = (await call(harness, number, `/groups?limit=1${cursor && `&cursor=${cursor}`}`)).body
      pages.push(...page.data.map(({ id }: { id: string }) => id))
      if (page.nextCursor === null) break
      cursor = page.nextCursor
    }
    expect(pages).toEqual((await groups()).map(({ id }) => id))
    await harness.network.changeGroup(group, { remove: [number.phone] })
    const left = await until('the end', () => events().find(({ event }) => event === 'group.left'))
    expect(left.data).toEqual({ group, subject: 'Jantar' })
    expect((await call(harness, number, `/groups/${group}`)).status).toBe(404)
  })

  test('a group that WhatsApp did not describe is asked about again after a crash', async () => {
    const group = '120363000000000904@g.us'
    const when = { stanza: 'iq', direction: 'in', attrs: { xmlns: 'w:g2', to: group } } as const
    const { rule } = await harness.network.misbehave({ kind: 'rule', rule: { when, do: { error: '429' } } })
    await harness.network.joinGroup(group, [number.phone, BIA])
    await until('the query', async () => {
      const { rules } = await harness.network.scenario()
      return rules.find(({ id }) => id === rule)!.fitted > 0
    })
    expect((await groups()).map(({ id }) => id)).not.toContain(group)
    await harness.service.kill('SIGKILL')
    await harness.network.misbehave({ kind: 'remove_rule', id: rule! })
    await harness.database.expireLeases()
    await harness.service.start()
    await until('the group', async () => (await groups()).some(({ id }) => id === group))
  })

  test('a group that the number is not a member of is not found', async () => {
    const { status, body } = await call(harness, number, '/groups/120363000000000001@g.us')
    expect([status, body.error.code]).toEqual([404, 'group_not_found'])
    expect((await call(harness, number, '/groups/5511987654321')).status).toBe(404)
  })
})
