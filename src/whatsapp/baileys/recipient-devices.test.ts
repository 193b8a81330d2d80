import type { BinaryNode, WASocket } from 'baileys'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { DeviceCache, dropUnusable, relayToDevices } from './recipient-devices.ts'
import { sending } from './signal/send-context.ts'

const OWN = '5511900000000'
const CONTACT = '5511987654321'
const jidOf = (user: string, device: number) => `${user}${device ? `:${device}` : ''}@s.whatsapp.net`
const allFailed = Object.assign(new Error('All encryptions failed'), { output: { statusCode: 500 }, data: null })

/** Writes to the devices in the cache. Fails as Baileys does if one side of the conversation has no device with keys. */
function stage(listed: Record<string, number[]>, keyless: string[]) {
  let now = 0
  const devices = new DeviceCache(() => now)
  const rows = new Map<string, unknown>()
  devices.attach({
    read: async () => rows,
    async write(changes) {
      for (const { id, value } of changes) rows.set(id, value)
    },
  })
  const writtenTo: string[][] = []
  const list = async () => {
    const found = await devices.mget<{ user: string; device: number }[]>([OWN, CONTACT])
    return [...(found[OWN] ?? []), ...(found[CONTACT] ?? [])].map(one => ({ ...one, jid: jidOf(one.user, one.device) }))
  }
  const socket = {
    getUSyncDevices: async () => {
      for (const [user, ids] of Object.entries(listed)) {
        if (!(await devices.get(user)) && ids.length > 0) {
          await devices.set(
            user,
            ids.map(device => ({ user, device, server: 's.whatsapp.net' })),
          )
        }
      }
      return list()
    },
    signalRepository: { validateSession: async (jid: string) => ({ exists: !keyless.includes(jid) }) },
    relayMessage: async () => {
      const to = await list()
      const reached = to.filter(({ jid }) => !keyless.includes(jid))
      const without = [OWN, CONTACT].some(
        user => to.some(one => one.user === user) && !reached.some(one => one.user === user),
      )
      if (without) throw allFailed
      writtenTo.push(reached.map(({ jid }) => jid))
    },
  }
  const relay = { socket: socket as unknown as WASocket, devices, self: { id: jidOf(OWN, 1) } }
  const send = () => relayToDevices(relay, `${CONTACT}@s.whatsapp.net`, {}, 'id')
  const pass = (ms: number) => {
    now += ms
  }
  return { devices, writtenTo, send, pass }
}

describe('a message is written to', () => {
  test('every listed device', async () => {
    const { send, writtenTo } = stage({ [OWN]: [0], [CONTACT]: [0, 2] }, [])
    await send()
    expect(writtenTo).toEqual([[jidOf(OWN, 0), jidOf(CONTACT, 0), jidOf(CONTACT, 2)]])
  })

  test('the phone of a recipient without listed devices, and the list is queried again a minute later', async () => {
    const listed: Record<string, number[]> = { [OWN]: [0], [CONTACT]: [] }
    const { send, pass, writtenTo } = stage(listed, [])
    await send()
    listed[CONTACT] = [0, 2]
    pass(60_000)
    await send()
    expect(writtenTo).toEqual([
      [jidOf(OWN, 0), jidOf(CONTACT, 0)],
      [jidOf(OWN, 0), jidOf(CONTACT, 0), jidOf(CONTACT, 2)],
    ])
  })

  test('an announced device is not added to a list that WhatsApp has not sent', async () => {
    const { devices, send } = stage({ [OWN]: [0], [CONTACT]: [] }, [])
    await send()
    expect(await devices.mget([CONTACT])).toMatchObject({ [CONTACT]: [{ device: 0 }] })
    expect(await devices.get(CONTACT)).toBeUndefined()
    expect(await devices.get(OWN)).toBeDefined()
  })

  test('every device but those without keys, which stay in the list that Baileys changes', async () => {
    const { devices, send, writtenTo } = stage({ [OWN]: [0], [CONTACT]: [0, 2] }, [jidOf(OWN, 0)])
    await send()
    devices.leaveOut(CONTACT, 2, 60_000)
    await send()
    expect(writtenTo).toEqual([[jidOf(CONTACT, 0), jidOf(CONTACT, 2)], [jidOf(CONTACT, 0)]])
    expect(await devices.get(CONTACT)).toMatchObject([{ device: 0 }, { device: 2 }])
  })

  test('the recipient, when our own phone has no keys', async () => {
    const { send, writtenTo } = stage({ [OWN]: [0], [CONTACT]: [0] }, [jidOf(OWN, 0)])
    await send()
    expect(writtenTo).toEqual([[jidOf(CONTACT, 0)]])
  })

  test('no device, when WhatsApp did not answer a query: no device is left out because of that', async () => {
    const { devices, send, writtenTo } = stage({ [OWN]: [0], [CONTACT]: [0] }, [jidOf(OWN, 0)])
    const unanswered = { link: {}, address: CONTACT, record: async () => undefined, unanswered: true } as const
    await expect(sending.run(unanswered, send)).rejects.toThrow(expect.objectContaining({ name: 'QueryUnanswered' }))
    expect(writtenTo).toEqual([])
    await devices.set(OWN, [{ device: 0 }])
    expect(await devices.mget([OWN])).toMatchObject({ [OWN]: [{ device: 0 }] })
  })

  test('the devices that are known, when WhatsApp does not answer a query for the second time', async () => {
    const { send, writtenTo } = stage({ [OWN]: [0], [CONTACT]: [0] }, [jidOf(OWN, 0)])
    const unanswered = { link: {}, address: CONTACT, record: async () => undefined, unanswered: true } as const
    await expect(sending.run(unanswered, send)).rejects.toThrow()
    await sending.run(unanswered, send)
    expect(writtenTo).toEqual([[jidOf(CONTACT, 0)]])
  })

  test('every device again a minute after WhatsApp did not answer the query for their keys', async () => {
    vi.useFakeTimers({ toFake: ['performance'] })
    onTestFinished(() => void vi.useRealTimers())
    const keyless = [jidOf(OWN, 0)]
    const { send, writtenTo } = stage({ [OWN]: [0], [CONTACT]: [0] }, keyless)
    const unanswered = { link: {}, address: CONTACT, record: async () => undefined, unanswered: true } as const
    await expect(sending.run(unanswered, send)).rejects.toThrow()
    await sending.run(unanswered, send)
    keyless.length = 0
    vi.advanceTimersByTime(60_000)
    await send()
    expect(writtenTo).toEqual([[jidOf(CONTACT, 0)], [jidOf(OWN, 0), jidOf(CONTACT, 0)]])
  })

  test('every device of a person whose list was forgotten, including those that were left out', async () => {
    const { devices, send, writtenTo } = stage({ [OWN]: [0], [CONTACT]: [0, 2] }, [])
    devices.leaveOut(CONTACT, 2, 3_600_000)
    await devices.del(CONTACT)
    await send()
    expect(writtenTo).toEqual([[jidOf(OWN, 0), jidOf(CONTACT, 0), jidOf(CONTACT, 2)]])
  })

  test('no device, when no device of the recipient has keys', async () => {
    const { send, writtenTo } = stage({ [OWN]: [0], [CONTACT]: [0, 2] }, [jidOf(CONTACT, 0), jidOf(CONTACT, 2)])
    await expect(send()).rejects.toBe(allFailed)
    expect(writtenTo).toEqual([])
  })
})

describe('of an answer', () => {
  const node = (tag: string, ...content: BinaryNode[]): BinaryNode => ({ tag, attrs: {}, content })
  const answer = (content: BinaryNode): BinaryNode => ({ tag: 'iq', attrs: { type: 'result' }, content: [content] })
  const error: BinaryNode = { tag: 'error', attrs: { code: '404' } }
  const kept = (frame: BinaryNode) => {
    const copy = structuredClone(frame)
    dropUnusable(copy)
    return copy
  }

  test('a device without keys is removed', () => {
    const good = node('user', node('identity'), node('skey'))
    const bad = [node('user', error), node('user'), node('user', node('identity')), node('user', node('skey'))]
    expect(kept(answer(node('list', good, ...bad, good)))).toEqual(answer(node('list', good, good)))
  })

  test('devices with an error are removed, and other parts of it remain', () => {
    const good = node('user', node('devices', node('device-list')))
    const bad = node('user', node('devices', error), node('lid'), node('contact', error))
    const listed = (...users: BinaryNode[]) => answer(node('usync', node('result'), node('list', ...users)))
    expect(kept(listed(good, bad))).toEqual(listed(good, node('user', node('lid'), node('contact', error))))
  })

  test('that is an error, or is about something else, nothing is removed', () => {
    for (const frame of [{ ...answer(error), attrs: { type: 'error' } }, answer(node('list', node('item')))])
      expect(kept(frame)).toEqual(frame)
  })
})

test('a list that was forgotten as the link ended is not used over the next link', async () => {
  const devices = new DeviceCache(() => 0)
  const rows = new Map<string, unknown>()
  const read = async () => rows
  devices.attach({ read, write: async changes => void changes.map(({ id, value }) => rows.set(id, value)) })
  await devices.set(CONTACT, [{ device: 0 }])
  devices.attach({ read, write: () => Promise.reject(new Error('The link has ended.')) })
  await expect(devices.del(CONTACT)).rejects.toThrow()
  expect(await devices.mget([CONTACT])).toEqual({})
  devices.attach({ read, write: async changes => void changes.map(({ id, value }) => rows.set(id, value)) })
  await devices.set(CONTACT, [{ device: 0 }, { device: 2 }])
  expect(await devices.mget([CONTACT])).toMatchObject({ [CONTACT]: [{ device: 0 }, { device: 2 }] })
})
