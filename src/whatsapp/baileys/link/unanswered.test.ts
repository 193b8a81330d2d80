import type { BinaryNode } from 'baileys'
import { expect, test } from 'vitest'
import { listGroups } from './list-groups.ts'
import { markRead } from './read-marks.ts'

const KEY = { remoteJid: '5511987654321@s.whatsapp.net', id: 'ABC', fromMe: false }

/** Baileys' query: after its timeout it returns undefined. */
function socketThatGets(answer: BinaryNode | undefined) {
  const asked: BinaryNode[] = []
  const query = async (node: BinaryNode) => {
    asked.push(node)
    return answer
  }
  return { asked, query, readMessages: async () => undefined }
}

test('a read mark that WhatsApp does not answer fails', async () => {
  await expect(markRead(socketThatGets(undefined), KEY)).rejects.toThrow('did not answer')
  await markRead(socketThatGets({ tag: 'iq', attrs: { type: 'result' } }), KEY)
})

test('a query for all groups that WhatsApp does not answer fails', async () => {
  await expect(listGroups(socketThatGets(undefined))).rejects.toThrow('did not answer')
})

test('lists the groups that WhatsApp names, with their members', async () => {
  const group = {
    tag: 'group',
    attrs: { id: '120363000000000001', subject: 'Team', creation: '1700000000', s_t: '1700000000' },
    content: [{ tag: 'participant', attrs: { jid: KEY.remoteJid, type: 'admin' } }],
  }
  const groups = { tag: 'groups', attrs: {}, content: [group] }
  const socket = socketThatGets({ tag: 'iq', attrs: { type: 'result' }, content: [groups] })
  expect(await listGroups(socket)).toMatchObject([
    { id: '120363000000000001@g.us', subject: 'Team', members: [{ phone: '5511987654321' }] },
  ])
  expect(socket.asked).toMatchObject([{ tag: 'iq', attrs: { to: '@g.us', xmlns: 'w:g2' } }])
  expect(await listGroups(socketThatGets({ tag: 'iq', attrs: { type: 'result' } }))).toEqual([])
})
