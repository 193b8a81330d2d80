import { type BinaryNode, proto } from 'baileys'
import { expect, it } from 'vitest'
import { isSignedBy } from '../src/signal/keys.ts'
import { link, startSimulator } from './world.ts'

it('the list of devices is signed by the phone, and names every linked device', async () => {
  const simulator = await startSimulator()
  const [a, b] = [await link(simulator, 'a'), await link(simulator, 'b')]
  const user = { tag: 'user', attrs: { jid: `${b.phone}@s.whatsapp.net` } }
  const devices = { tag: 'devices', attrs: { version: '2' } }
  const usync = {
    tag: 'usync',
    attrs: { sid: '1', mode: 'query', context: 'message', last: 'true', index: '0' },
    content: [
      { tag: 'query', attrs: {}, content: [devices] },
      { tag: 'list', attrs: {}, content: [user] },
    ],
  }
  const answer = await a.sock.query({
    tag: 'iq',
    attrs: { to: '@s.whatsapp.net', type: 'get', xmlns: 'usync' },
    content: [usync],
  })
  const find = (node: BinaryNode, tag: string): BinaryNode | undefined => {
    if (node.tag === tag) return node
    const parts = Array.isArray(node.content) ? node.content : []
    return parts.map(one => find(one, tag)).find(one => one !== undefined)
  }
  const listed = find(answer, 'key-index-list')?.content as Uint8Array
  const { details, accountSignature } = proto.ADVSignedKeyIndexList.decode(listed)
  const account = b.state.creds.account!
  const signed = Buffer.concat([Buffer.from([6, 2]), details!])
  expect(isSignedBy(Buffer.from(account.accountSignatureKey!), signed, Buffer.from(accountSignature!))).toBe(true)
  const list = proto.ADVKeyIndexList.decode(details!)
  expect(list.validIndexes).toEqual([0, 1])
  expect(list.rawId).toBe(proto.ADVDeviceIdentity.decode(account.details!).rawId)
})
