import { describe, expect, test, vi } from 'vitest'
import { CONDITION_WITHIN_MS } from '../../../test/deadlines.ts'
import { stage } from '../../../test/units/sender-harness.ts'
import type { GroupDetails } from '../../domain/recipients/group.ts'

const group = '120363000000000777@g.us'
const details: GroupDetails = {
  id: group,
  subject: 'Team',
  description: null,
  memberCount: 1,
  members: [],
  addressing: 'lid',
  adminsOnly: false,
  isCommunity: false,
  disappearsAfter: 0,
}

describe('a refusal for the addressing of a group', () => {
  /** A message to the group, which WhatsApp has described a moment ago, is refused. */
  async function refuse(queryGroup: () => Promise<GroupDetails>, error = 421) {
    const staged = stage()
    const { sender, accept, answer, written, link } = staged
    const query = vi.fn(async () => details)
    sender.start()
    sender.attach({ ...link, queryGroup: query })
    const message = accept(group)
    await vi.waitFor(() => expect(written).toHaveLength(1), CONDITION_WITHIN_MS)
    query.mockClear()
    query.mockImplementation(queryGroup)
    answer(message.whatsappId, { chat: group, error })
    return { ...staged, query, message }
  }

  test('queries the group at once, and leads to one retry; a second refusal is final', async () => {
    const { answer, written, query, message } = await refuse(async () => details)
    await vi.waitFor(() => expect(written).toHaveLength(2), CONDITION_WITHIN_MS)
    expect(query).toHaveBeenCalledOnce()
    expect(written[1]).toEqual(written[0])
    answer(message.whatsappId, { chat: group, error: 421 })
    await vi.waitFor(() => expect(message.ended).toContain('421'), CONDITION_WITHIN_MS)
    expect(query).toHaveBeenCalledOnce()
  })

  test('queries the group even if the devices of its members were outdated before', async () => {
    const { answer, written, query, message } = await refuse(async () => details, 479)
    await vi.waitFor(() => expect(written).toHaveLength(2), CONDITION_WITHIN_MS)
    expect(query).not.toHaveBeenCalled()
    answer(message.whatsappId, { chat: group, error: 421 })
    await vi.waitFor(() => expect(written).toHaveLength(3), CONDITION_WITHIN_MS)
    expect(query).toHaveBeenCalledOnce()
    answer(message.whatsappId)
    await vi.waitFor(() => expect(message.ended).toBe('sent'), CONDITION_WITHIN_MS)
  })

  test('is not final while WhatsApp does not describe the group', async () => {
    const { answer, written, query, message } = await refuse(() => Promise.reject(new Error('Timed out.')))
    await vi.waitFor(() => expect(written).toHaveLength(2), CONDITION_WITHIN_MS)
    query.mockImplementation(async () => details)
    answer(message.whatsappId, { chat: group, error: 421 })
    await vi.waitFor(() => expect(written).toHaveLength(3), CONDITION_WITHIN_MS)
    answer(message.whatsappId)
    await vi.waitFor(() => expect(message.ended).toBe('sent'), CONDITION_WITHIN_MS)
  })

  test('fails the message if the number has left the group', async () => {
    const left = Object.assign(new Error('forbidden'), { data: 403 })
    const { written, message } = await refuse(() => Promise.reject(left))
    await vi.waitFor(() => expect(message.ended).toContain('not_a_group_member'), CONDITION_WITHIN_MS)
    expect(written).toHaveLength(1)
  })

  test('that is late queries the group; a second one is final, and the next message of the group follows', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date', 'performance'] })
    const { sender, accept, answer, written, link } = stage({ ackTimeoutMs: 10 })
    const query = vi.fn(async () => details)
    const [message, next] = [accept(group), accept(group)]
    for (const one of [message, next]) one.prepared = { address: group, content: new Uint8Array([one.seq]) }
    sender.start()
    sender.attach({ ...link, queryGroup: query })
    const refuseLate = async (attempt: number) => {
      await vi.waitFor(() => expect(written).toHaveLength(attempt), CONDITION_WITHIN_MS)
      await vi.advanceTimersByTimeAsync(50)
      answer(message.whatsappId, { chat: group, error: 421 })
    }
    await refuseLate(1)
    await vi.waitFor(() => expect(query).toHaveBeenCalledOnce(), CONDITION_WITHIN_MS)
    expect(message.ended).toBeUndefined()
    await refuseLate(2)
    await vi.waitFor(() => expect(message.ended).toContain('421'), CONDITION_WITHIN_MS)
    await vi.waitFor(() => expect(written.at(-1)?.whatsappId).toBe(next.whatsappId), CONDITION_WITHIN_MS)
    expect(query).toHaveBeenCalledOnce()
  })
})

test('a device hash in the acknowledgement of a group message causes no query for devices, and no immediate query about the group', async () => {
  const { sender, accept, answer, written, link } = stage()
  const query = vi.fn(async () => details)
  sender.start()
  sender.attach({ ...link, queryGroup: query })
  const message = accept(group)
  await vi.waitFor(() => expect(written).toHaveLength(1), CONDITION_WITHIN_MS)
  answer(message.whatsappId, { chat: group, devicesHash: '2:a' })
  await vi.waitFor(() => expect(message.ended).toBe('sent'), CONDITION_WITHIN_MS)
  expect(link.forgetDevices).not.toHaveBeenCalled()
  expect(query).toHaveBeenCalledOnce()
})
