import { describe, expect, test } from 'vitest'
import { newMessageId, newWhatsappId } from '../../../../src/domain/ids.ts'
import type { LocalHints } from '../../../../src/store/hints.ts'
import { ONE_STORE } from '../../../databases/one-store.ts'
import { until } from '../../../until.ts'
import { WhatsappHarness } from '../harness.ts'
import { replacing } from '../replacing.ts'

const CONFIRMED = { cause: 'logged_out_as_asked', reason: 'Logged out on request. (WhatsApp is simulated.)' }
const NOT_CONFIRMED = {
  cause: 'logout_unconfirmed',
  reason: expect.stringContaining('has not confirmed it. If the phone'),
}
/** Nobody listens at this port. */
const UNREACHABLE = { kind: 'simulated', url: 'ws://127.0.0.1:9/ws/chat' } as const

const isLinked = async (harness: WhatsappHarness, phone: string) =>
  (await harness.network.listAccounts()).find(account => account.phone === phone)?.linked

const notUnlinked = (harness: WhatsappHarness) => harness.log.filter(line => line.includes('instance.not_unlinked'))

async function untilSettled(harness: WhatsappHarness, id: string) {
  const record = await harness.reaches(id, 'logged_out')
  await until('the goal to become idle', async () => (await harness.store.connections.find(id))?.goal === 'idle')
  expect((await harness.store.credentials.get(id, 'creds', ['creds'])).size).toBe(0)
  return record
}

describe.each(ONE_STORE)('on %s, a logout', kind => {
  test('of a number without a connection is tried again when WhatsApp refuses the first login', async () => {
    await using harness = await WhatsappHarness.open({}, kind)
    const { id, phone, connection } = await harness.link()
    await harness.stop(connection)
    await harness.network.misbehave({ kind: 'refuse_logins', reason: '503', count: 1 })
    await harness.store.connections.requestLogout(id)
    await harness.connect(id, { scan: false })
    expect(await untilSettled(harness, id)).toMatchObject(CONFIRMED)
    expect(await isLinked(harness, phone)).toBe(false)
    expect(notUnlinked(harness)).toEqual([])
  })

  test('that cannot reach WhatsApp ends, and says that the phone may still show the device', async () => {
    await using harness = await WhatsappHarness.open({}, kind)
    const { id, phone, connection } = await harness.link()
    await harness.stop(connection)
    await harness.connect(id, { network: UNREACHABLE })
    await until('an attempt', async () => (await harness.store.connections.find(id))?.cause === 'unreachable')
    await harness.store.connections.requestLogout(id)
    expect(await untilSettled(harness, id)).toMatchObject({ ...NOT_CONFIRMED, phone: null })
    expect(await isLinked(harness, phone)).toBe(true)
    expect(notUnlinked(harness)).toHaveLength(1)
    const { data: events } = await harness.store.events.list(id, { limit: 1 })
    const [event] = await Promise.all(events.map(one => harness.store.events.find(id, one.id)))
    expect(JSON.parse(event!.body)).toMatchObject({ event: 'instance.logged_out', data: NOT_CONFIRMED })
  })
})

test('a logout over an open connection that has gone silent is not reported as confirmed', async () => {
  await using harness = await WhatsappHarness.open()
  const { id } = await harness.link()
  harness.line.hold()
  await harness.store.connections.requestLogout(id)
  expect(await untilSettled(harness, id)).toMatchObject(NOT_CONFIRMED)
})

test('a request to connect during a logout that is not confirmed follows it, and the events say so', async () => {
  await using harness = await WhatsappHarness.open()
  const { id, phone } = await harness.link()
  harness.line.hold()
  await harness.store.connections.requestLogout(id)
  await harness.store.connections.requestConnect(id, null)
  await harness.reaches(id, 'logged_out')
  harness.line.release()
  await harness.reaches(id, 'connected')
  const { data: events } = await harness.store.events.list(id, { limit: 10 }, { kind: 'instance.logged_out' })
  expect(events).toHaveLength(1)
  const event = await harness.store.events.find(id, events[0]!.id)
  expect(JSON.parse(event!.body)).toMatchObject({ data: { ...NOT_CONFIRMED, phone } })
})

test('a logout also erases keys that are being stored when WhatsApp confirms it', async () => {
  await using harness = await WhatsappHarness.open()
  const { credentials } = harness.store
  const [began, late] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const kept: { type: string; id: string }[] = []
  const commits: Promise<void>[] = []
  let isSlow = false
  const slow: typeof credentials = {
    get: (...args) => credentials.get(...args),
    set: (lease, rows) => {
      if (!isSlow) return credentials.set(lease, rows)
      kept.push(...rows)
      began.resolve()
      commits.push(late.promise.then(() => credentials.set(lease, rows)))
      return commits.at(-1)!
    },
    clear: lease => credentials.clear(lease),
  }
  const { id, phone } = await harness.link({ store: { ...harness.store, credentials: slow } })
  const request = { stanza: 'iq', direction: 'in', attrs: { xmlns: 'md' } } as const
  const { rule } = await harness.network.misbehave({ kind: 'rule', rule: { when: request, do: 'hold' } })
  await harness.store.connections.requestLogout(id)
  await until('the request', async () => {
    const { rules } = await harness.network.scenario()
    return rules.find(one => one.id === rule)?.applied === 1
  })
  isSlow = true
  await harness.network.writeAs({ from: '5511987654321', to: phone, text: 'meanwhile' })
  await began.promise
  await harness.network.misbehave({ kind: 'release' })
  await until('the socket to close', () => harness.line.sockets === 0)
  setTimeout(late.resolve, 300)
  await untilSettled(harness, id)
  await Promise.all([late.promise, ...commits])
  expect(kept).not.toEqual([])
  for (const { type, id: row } of kept) expect((await credentials.get(id, type, [row])).size).toBe(0)
})

test('a logout while a new code is requested ends the linking', async () => {
  await using harness = await WhatsappHarness.open()
  const { id } = await harness.link()
  await harness.store.connections.requestLogout(id)
  await untilSettled(harness, id)
  harness.line.hold()
  await harness.store.connections.requestConnect(id, null)
  await until('the request', async () => (await harness.store.connections.find(id))?.cause === 'asking_for_code')
  await harness.store.connections.requestLogout(id)
  await until('the end', async () => (await harness.store.connections.find(id))?.cause === CONFIRMED.cause)
  await until('the socket to close', () => harness.line.sockets === 0)
  expect(await untilSettled(harness, id)).toMatchObject(CONFIRMED)
})

test('no code is requested after a logout that was read while the next attempt to link became due', async () => {
  await using harness = await WhatsappHarness.open()
  const id = await harness.createInstance()
  const { connections, hints } = harness.store
  const released = Promise.withResolvers<void>()
  let [reads, isSlow] = [0, false]
  const slow = replacing(connections, {
    find: async instanceId => {
      reads += 1
      if (isSlow) await released.promise
      return connections.find(instanceId)
    },
  })
  await harness.connect(id, { network: UNREACHABLE, store: { ...harness.store, connections: slow } })
  await connections.requestConnect(id, null)
  const { retryAt } = await until('the pause', async () => {
    const record = await connections.find(id)
    return record?.retryAt ? record : null
  })
  isSlow = true
  await connections.requestLogout(id)
  await until('the next attempt to be due', () => Date.now() > retryAt! + 50)
  const before = reads
  released.resolve()
  await until('the logout', async () => (await connections.find(id))?.goal === 'idle')
  ;(hints as LocalHints).publish('goal', id)
  await until('the steps that follow', () => reads >= before + 2)
  expect(await connections.find(id)).toMatchObject({ state: 'unlinked', cause: 'never_linked' })
})

test('a phone that scans the code during a logout leaves no credentials behind', async () => {
  await using harness = await WhatsappHarness.open()
  const id = await harness.createInstance()
  const { connections, credentials } = harness.store
  const [read, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  let isSlow = false
  const slow = replacing(credentials, {
    get: async (...args) => {
      const rows = await credentials.get(...args)
      if (isSlow) {
        read.resolve()
        await released.promise
      }
      return rows
    },
  })
  await harness.connect(id, { scan: false, store: { ...harness.store, credentials: slow } })
  await connections.requestConnect(id, null)
  const { qr } = await harness.reaches(id, 'linking')
  isSlow = true
  await connections.requestLogout(id)
  await read.promise
  // WhatsApp refuses the code once the link is closed.
  await harness.network.scanQr(qr!).catch(() => undefined)
  released.resolve()
  await until('the logout', async () => (await connections.find(id))?.goal === 'idle')
  expect(await connections.find(id)).toMatchObject({ state: 'unlinked', cause: 'never_linked' })
  expect((await credentials.get(id, 'creds', ['creds'])).size).toBe(0)
})

test('a logout is confirmed if the phone has removed the device before', async () => {
  await using harness = await WhatsappHarness.open()
  const { id, phone, connection } = await harness.link()
  await harness.stop(connection)
  await harness.network.unlink(phone)
  await harness.store.connections.requestLogout(id)
  await harness.connect(id, { scan: false })
  expect(await untilSettled(harness, id)).toMatchObject(CONFIRMED)
})

test('a logout that WhatsApp refuses for a permanent reason is not tried again', async () => {
  await using harness = await WhatsappHarness.open()
  const { id, connection } = await harness.link()
  await harness.stop(connection)
  const { opened } = harness.line
  await harness.network.misbehave({ kind: 'refuse_logins', reason: '403', count: 5 })
  await harness.store.connections.requestLogout(id)
  await harness.connect(id, { scan: false })
  expect(await untilSettled(harness, id)).toMatchObject(NOT_CONFIRMED)
  expect(harness.line.opened).toBe(opened + 1)
})

test('a stop during a logout leaves it to the next owner', async () => {
  await using harness = await WhatsappHarness.open()
  const { id, phone, connection } = await harness.link()
  await harness.stop(connection)
  await harness.store.connections.requestLogout(id)
  const next = await harness.connect(id, { network: UNREACHABLE })
  await until('an attempt', async () => (await harness.store.connections.find(id))?.cause === 'logging_in')
  await harness.stop(next)
  expect(await harness.store.connections.find(id)).toMatchObject({ state: 'reconnecting', goal: 'logged_out', phone })
  await harness.connect(id, { scan: false })
  expect(await untilSettled(harness, id)).toMatchObject(CONFIRMED)
  expect(await isLinked(harness, phone)).toBe(false)
})

test('a kill while an unlinking by the phone is wound up leaves the cause, and the next owner ends it', async () => {
  await using harness = await WhatsappHarness.open()
  const { id, connection } = await harness.link()
  await harness.stop(connection)
  const { id: message } = await harness.accept(id, '5511987654321', 'queued')
  const unlinked = { state: 'logged_out', goal: 'logged_out', cause: 'logged_out_by_phone', phone: null } as const
  const reason = 'Logged out from the phone.'
  await harness.store.connections.record(await harness.lease(id), { ...unlinked, reason }, Date.now())
  const { opened } = harness.line
  await harness.connect(id, { scan: false })
  expect(await untilSettled(harness, id)).toMatchObject({ cause: 'logged_out_by_phone', reason })
  expect((await harness.becomes(id, message, 'failed')).failure?.code).toBe('instance_logged_out')
  expect(harness.line.opened).toBe(opened)
})

test('the deletion of an instance whose connection has gone silent ends in time, and the log says that it was not unlinked', async () => {
  await using harness = await WhatsappHarness.open()
  const { id, connection } = await harness.link()
  harness.line.hold()
  await harness.store.instances.delete(id, Date.now())
  await connection.stop({ logOut: true })
  expect(notUnlinked(harness)).toHaveLength(1)
  expect(notUnlinked(harness)[0]).toContain(id)
})

test('a scheduled message that is committed after the queue has failed does not wait for the next number', async () => {
  await using harness = await WhatsappHarness.open()
  const { id, phone } = await harness.link()
  const { store } = harness
  await store.connections.requestLogout(id)
  await untilSettled(harness, id)
  const lease = await harness.lease(id)
  const now = Date.now()
  const message = {
    id: newMessageId(now),
    instanceId: id,
    to: '5511987654321',
    text: 'later',
    notBefore: now + 600_000,
  }
  // As if its transaction had read the state before the logout.
  await store.connections.record(lease, { state: 'connected', phone, reason: 'Connected.' }, now)
  const outcome = await store.messages.accept({ ...message, whatsappId: newWhatsappId() }, now)
  expect(outcome.kind).toBe('accepted')
  await store.connections.record(lease, { state: 'logged_out', phone: null, reason: CONFIRMED.reason }, now)
  // Instead of the next poll.
  ;(store.hints as LocalHints).publish('goal', id)
  expect((await harness.becomes(id, message.id, 'failed')).failure?.code).toBe('instance_logged_out')
})
