import { describe, expect, test } from 'vitest'
import { ONE_STORE } from '../../databases/one-store.ts'
import { Talking } from './harness.ts'

const CHATS = 40
const GROUPS = Array.from({ length: 10 }, (_, group) => `1203630000000070${group.toString().padStart(2, '0')}@g.us`)
const ROUNDS = 3

describe.each(ONE_STORE)('on %s', store => {
  test('texts that are deleted while they are being sent never end the link', async () => {
    await using talking = await Talking.open(store)
    const chats = Array.from({ length: CHATS }, (_, chat) => `551198765${chat.toString().padStart(4, '0')}`)
    // From now on no address has to be looked up, and a text is written within milliseconds.
    for (const id of await Promise.all([...chats, ...GROUPS].map(to => talking.send({ to, text: 'antes' }))))
      await talking.becomes(id, 'sent', 'delivered', 'read')
    const ends = talking.harness.endsOf(talking.number)
    const sendAndDelete = async (to: string, text: string) => {
      const id = await talking.send({ to, text })
      const { status, body } = await talking.call('DELETE', `/messages/${id}`)
      expect(status).toBe(202)
      await talking.event('command.done', data => data.id === body.data.id)
      const { status: state } = (await talking.call('GET', `/messages/${id}`)).body.data
      return { to, text, isCancelled: state === 'failed' }
    }
    const deleted = []
    for (let round = 0; round < ROUNDS; round += 1)
      deleted.push(...(await Promise.all([...chats, ...GROUPS].map(to => sendAndDelete(to, `apagada ${round}`)))))
    for (const { to, text, isCancelled } of deleted) {
      if (GROUPS.includes(to)) continue
      const shown = (await talking.inbox(to)).filter(message => message.text === text)
      expect(shown.map(message => message.deleted ?? false)).toEqual(isCancelled ? [] : [true])
    }
    expect(talking.harness.endsOf(talking.number)).toBe(ends)
    console.log(
      `cancelled before they were written: ${deleted.filter(one => one.isCancelled).length} of ${deleted.length}`,
    )
  })

  test('texts to new recipients that are cancelled while they wait never end the link', async () => {
    await using talking = await Talking.open(store)
    const { network } = talking.harness
    const chats = Array.from({ length: 10 }, (_, chat) => `551198765${(chat + 500).toString()}0`)
    const recipients = [...chats, '120363000000007100@g.us']
    const ends = talking.harness.endsOf(talking.number)
    // The texts are in the sender's memory, and WhatsApp answers no look-up.
    network.pause()
    const ids = []
    for (const to of recipients) ids.push(await talking.send({ to, text: 'apagada' }))
    for (const id of ids) {
      expect((await talking.call('DELETE', `/messages/${id}`)).status).toBe(202)
      expect((await talking.becomes(id, 'failed')).error.code).toBe('cancelled')
    }
    network.resume()
    for (const to of recipients) await talking.becomes(await talking.send({ to, text: 'última' }), 'read')
    for (const to of chats) expect((await talking.inbox(to)).map(({ text }) => text)).toEqual(['última'])
    expect(talking.harness.endsOf(talking.number)).toBe(ends)
  })
})
