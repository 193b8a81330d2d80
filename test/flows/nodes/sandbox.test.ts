import { expect, test } from 'vitest'
import { LONG_TEST_WITHIN_MS } from '../../deadlines.ts'
import type { Service } from '../../service.ts'
import { until } from '../../until.ts'
import { NodesHarness } from './harness.ts'

test(
  'a sandbox instance works through every node, and continues on another node when its owner ends',
  async () => {
    await using harness = await NodesHarness.open(2, { WHATSAPP_URL: '' })
    const { id, token } = await harness.nodes[0]!.admin.createConnected()
    const owner = await until('an owner', () => harness.ownerOf(id))
    const other = harness.nodes.find(node => node !== owner)!
    await other.instance(id, token).setWebhook(harness.receiver.url)
    const heard = (text: string) =>
      until(`"${text}" at the webhook`, () => harness.receiver.events.find(({ data }) => data['text'] === text))

    for (const node of harness.nodes) {
      await node.admin.writeAsContact(id, { from: '5511912345678', text: `to ${node.pid}` })
      await heard(`to ${node.pid}`)
    }
    await expect(other.admin.writeAsContact(id, { from: '1', text: 'no number' })).rejects.toThrow('400')
    const group = '120363000000000001@g.us'
    await expect(other.admin.writeAsContact(id, { from: '5511912345678', text: 'x', group })).rejects.toThrow('400')

    await other.admin.switchPhone(id, false)
    await other.admin.untilState(id, 'reconnecting')
    for (const node of harness.nodes) expect(await node.admin.readPhone(id)).toEqual({ on: false })
    await expect(other.admin.writeAsContact(id, { from: '5511912345678', text: 'off' })).rejects.toThrow('422')
    await other.admin.switchPhone(id, true)
    await other.admin.untilState(id, 'connected')

    const { id: before } = await other.instance(id, token).send('5511987654321', 'before')
    await harness.untilReported(before, 'message.sent')
    await owner.kill('SIGTERM')
    await until('the other one to own it', async () => (await harness.ownerOf(id)) === other)
    await other.admin.untilState(id, 'connected')
    await harness.untilReported(before, 'message.read')
    const { id: after } = await other.instance(id, token).send('5511987654321', 'after')
    await harness.untilReported(after, 'message.read')
    await other.admin.writeAsContact(id, { from: '5511912345678', text: 'still here' })
    await heard('still here')
  },
  LONG_TEST_WITHIN_MS,
)

test(
  'while no node runs a simulated phone, reading it gets 503',
  async () => {
    await using harness = await NodesHarness.open(2, { WHATSAPP_URL: '' })
    const { id } = await harness.nodes[0]!.admin.createConnected()
    const owner = await until('an owner', () => harness.ownerOf(id))
    const other = harness.nodes.find(node => node !== owner)!
    await owner.kill('SIGKILL')
    await expect(other.admin.readPhone(id)).rejects.toThrow('503')
  },
  LONG_TEST_WITHIN_MS,
)

test(
  'a node with SANDBOX=off leaves sandbox instances to the others, and stops them only if there is no other',
  async () => {
    await using harness = await NodesHarness.open(2, place => ({ SANDBOX: place === 0 ? 'on' : 'off' }))
    const [on, off] = harness.nodes as [Service, Service]
    const ids: string[] = []
    for (let count = 0; count < 7; count += 1) ids.push((await on.admin.createInstance('sandbox')).id)
    for (const id of ids) await on.admin.untilState(id, 'connected')
    const linked = await Promise.all([off, on, off, on].map(node => node.admin.createInstance('whatsapp')))
    const owners = (some: readonly { id: string }[]) => Promise.all(some.map(({ id }) => harness.ownerOf(id)))
    await until('each node to have its share', async () => {
      const found = await owners(linked)
      return found.filter(owner => owner === on).length === 2 && found.filter(owner => owner === off).length === 2
    })
    expect(new Set(await owners(ids.map(id => ({ id }))))).toEqual(new Set([on]))
    for (const id of ids) expect((await off.admin.connection(id)).state).toBe('connected')

    await on.kill('SIGTERM')
    for (const id of ids) await off.admin.untilState(id, 'stopped')
    await on.start()
    for (const id of ids) await off.admin.untilState(id, 'connected')
    expect(new Set(await owners(ids.map(id => ({ id }))))).toEqual(new Set([on]))
  },
  LONG_TEST_WITHIN_MS,
)
