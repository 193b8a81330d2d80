import { expect, test } from 'vitest'
import { until } from '../until.ts'
import { NodesStage } from './nodes-stage.ts'

const WITHIN_MS = 120_000

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
  WITHIN_MS,
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
  WITHIN_MS,
)
