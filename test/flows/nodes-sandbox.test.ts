import { expect, test } from 'vitest'
import { LONG_TEST_WITHIN_MS } from '../deadlines.ts'
import type { Service } from '../service.ts'
import { until } from '../until.ts'
import { NodesStage } from './nodes-stage.ts'

test(
  'a sandbox works through every node, and goes on where it was when its node goes',
  async () => {
    await using stage = await NodesStage.open(2, { WHATSAPP_URL: '' })
    const { id, token } = await stage.nodes[0]!.admin.createConnected()
    const owner = await until('an owner', () => stage.ownerOf(id))
    const other = stage.nodes.find(node => node !== owner)!
    await other.instance(id, token).setWebhook(stage.receiver.url)
    const heard = (text: string) =>
      until(`"${text}" at the webhook`, () => stage.receiver.events.find(({ data }) => data['text'] === text))

    for (const node of stage.nodes) {
      await node.admin.writeAsContact(id, { from: '5511912345678', text: `to ${node.pid}` })
      await heard(`to ${node.pid}`)
    }
    await expect(other.admin.writeAsContact(id, { from: '1', text: 'no number' })).rejects.toThrow('400')
    const group = '120363000000000001@g.us'
    await expect(other.admin.writeAsContact(id, { from: '5511912345678', text: 'x', group })).rejects.toThrow('400')

    await other.admin.switchPhone(id, false)
    await other.admin.untilState(id, 'reconnecting')
    for (const node of stage.nodes) expect(await node.admin.readPhone(id)).toEqual({ on: false })
    await expect(other.admin.writeAsContact(id, { from: '5511912345678', text: 'off' })).rejects.toThrow('422')
    await other.admin.switchPhone(id, true)
    await other.admin.untilState(id, 'connected')

    const { id: before } = await other.instance(id, token).send('5511987654321', 'before')
    await stage.told(before, 'message.sent')
    await owner.kill('SIGTERM')
    await until('the other one to own it', async () => (await stage.ownerOf(id)) === other)
    await other.admin.untilState(id, 'connected')
    await stage.told(before, 'message.read')
    const { id: after } = await other.instance(id, token).send('5511987654321', 'after')
    await stage.told(after, 'message.read')
    await other.admin.writeAsContact(id, { from: '5511912345678', text: 'still here' })
    await heard('still here')
  },
  LONG_TEST_WITHIN_MS,
)

test(
  'while no node runs the phone, its pages say 503 and change nothing',
  async () => {
    await using stage = await NodesStage.open(2, { WHATSAPP_URL: '' })
    const { id } = await stage.nodes[0]!.admin.createConnected()
    const owner = await until('an owner', () => stage.ownerOf(id))
    const other = stage.nodes.find(node => node !== owner)!
    await owner.kill('SIGKILL')
    await expect(other.admin.readPhone(id)).rejects.toThrow('503')
  },
  LONG_TEST_WITHIN_MS,
)

test(
  'a node that runs no sandbox leaves sandbox instances to those that do, and stops them only where none does',
  async () => {
    await using stage = await NodesStage.open(2, place => ({ SANDBOX: place === 0 ? 'on' : 'off' }))
    const [on, off] = stage.nodes as [Service, Service]
    const ids: string[] = []
    for (let count = 0; count < 7; count += 1) ids.push((await on.admin.createInstance('sandbox')).id)
    for (const id of ids) await on.admin.untilState(id, 'connected')
    const linked = await Promise.all([off, on, off, on].map(node => node.admin.createInstance('whatsapp')))
    const owners = (some: readonly { id: string }[]) => Promise.all(some.map(({ id }) => stage.ownerOf(id)))
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
