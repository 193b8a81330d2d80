/** Media between an unmodified Baileys program and simulated phones. The program only has to trust the certificate. */
import { readdir } from 'node:fs/promises'
import { MEDIA_TYPES, type MediaType } from '@pombal/simulator'
import { extractMessageContent, type WAMessage } from 'baileys'
import { describe, expect, it } from 'vitest'
import { MemoryStorage } from '../memory-storage.ts'
import { temporaryFolder } from '../temporary-folder.ts'
import { until } from '../wait.ts'
import { jid, link, startClient, startSimulator, statuses } from '../world.ts'
import { contents, descriptions, download, files, received, sendContent, sha256, trust } from './media-world.ts'

const CONTACT = '5511999990001'
const ECHO = '15005550005'
const GROUP = '120363000000000555@g.us'

async function startLinked() {
  const simulator = await startSimulator()
  trust(simulator.media)
  return { simulator, client: await link(simulator, 'a') }
}

const expected = (type: MediaType) => ({
  type,
  ...descriptions[type],
  size: files[type].length,
  sha256: sha256(files[type]),
})

describe.each(MEDIA_TYPES)('a message with a file (%s)', type => {
  it('that a program sends is decrypted by the contact, byte by byte', async () => {
    const { simulator, client } = await startLinked()
    const { key } = await sendContent(client, jid(CONTACT), contents[type])
    await until(() => statuses(client, key.id!).length === 2)
    expect(statuses(client, key.id!)).toEqual(['delivered', 'read'])
    expect(await simulator.inbox(CONTACT)).toMatchObject([{ id: key.id, text: '', media: expected(type), copies: 1 }])
    expect((await simulator.inbox(CONTACT))[0]?.media).toEqual(expected(type))
  })

  it('that a contact sends can be downloaded by a program, byte by byte', async () => {
    const { simulator, client } = await startLinked()
    const media = { type, bytes: files[type], ...descriptions[type] }
    const { id } = await simulator.writeAs({ from: CONTACT, to: client.phone, media })
    const message = await until(() => received(client, id))
    expect(await download(message)).toEqual(files[type])
    expect((await simulator.inbox(client.phone))[0]).toMatchObject({ id, media: expected(type) })
  })

  it('comes back from 15005550005 with the same bytes, under another key', async () => {
    const { client } = await startLinked()
    const sent = await sendContent(client, jid(ECHO), contents[type])
    const { message } = await until(() => client.seen.messages[0])
    expect(await download(message)).toEqual(files[type])
    expect(partOf(message)).toMatchObject({ mimetype: descriptions[type].mimetype })
    expect(partOf(message).mediaKey).not.toEqual(partOf(sent).mediaKey)
  })
})

/** The media part of a message, inside its wrappers. */
function partOf({ message }: WAMessage): { mediaKey: Uint8Array } {
  return Object.values(extractMessageContent(message)!).find(part => part?.mediaKey)
}

describe('a file', () => {
  it('can be sent to a LID, and to a group, whose members all have it', async () => {
    const { simulator, client } = await startLinked()
    await simulator.writeAs({ from: CONTACT, to: client.phone, text: 'hello' })
    const lid = await until(() => client.seen.messages[0]?.message.key.remoteJid)
    expect(lid).toMatch(/@lid$/)
    await sendContent(client, lid, contents.image)
    await until(async () => (await simulator.inbox(CONTACT)).length === 1)
    expect((await simulator.inbox(CONTACT))[0]?.media).toEqual(expected('image'))
    await simulator.joinGroup(GROUP, [client.phone, CONTACT, '5511999990002'])
    const { id } = (await sendContent(client, GROUP, contents.document)).key
    for (const member of [CONTACT, '5511999990002']) {
      const copy = await until(async () => (await simulator.inbox(member)).find(message => message.id === id))
      expect(copy).toMatchObject({ group: GROUP, media: expected('document') })
    }
    const written = await simulator.writeAs({
      from: CONTACT,
      to: client.phone,
      group: GROUP,
      media: { type: 'sticker', bytes: files.sticker },
    })
    expect(await download(await until(() => received(client, written.id)))).toEqual(files.sticker)
  })

  it('can be quoted by either side, and downloaded from the quotation', async () => {
    const { simulator, client } = await startLinked()
    const { id } = await simulator.writeAs({
      from: CONTACT,
      to: client.phone,
      media: { type: 'document', bytes: files.document, filename: 'contract.pdf', caption: 'please sign' },
    })
    const document = await until(() => received(client, id))
    const answer = await client.sock.sendMessage(jid(CONTACT), contents.image, { quoted: document })
    await until(async () => (await simulator.inbox(CONTACT)).length === 1)
    expect((await simulator.inbox(CONTACT))[0]).toMatchObject({ quoted: id, media: expected('image') })
    const quote = answer!.key.id!
    const second = await simulator.writeAs({ from: CONTACT, to: client.phone, text: 'nice', quote })
    const { message } = await until(() => received(client, second.id))
    const context = message!.extendedTextMessage!.contextInfo!
    expect(context).toMatchObject({ stanzaId: quote, participant: client.lid })
    expect(await download({ key: {}, message: context.quotedMessage! })).toEqual(files.image)
    await expect(
      simulator.writeAs({ from: CONTACT, to: client.phone, text: 'x', quote: 'unknown' }),
    ).rejects.toMatchObject({ code: 'invalid_argument' })
  })

  it('reaches the client of another account, and its phone', async () => {
    const { simulator, client } = await startLinked()
    const other = await link(simulator, 'b')
    const { key } = await sendContent(client, jid(other.phone), contents.video)
    expect(await download(await until(() => received(other, key.id!)))).toEqual(files.video)
    expect((await simulator.inbox(other.phone))[0]?.media).toEqual(expected('video'))
  })

  it('can be requested again by a client that could not decrypt the message', async () => {
    const { simulator, client } = await startLinked()
    const media = { type: 'image', bytes: files.image } as const
    const { id } = await simulator.writeAs({ from: CONTACT, to: client.phone, media, undecryptable: true })
    const readable = () => client.seen.messages.find(({ message }) => message.key.id === id && message.message)
    expect(await download((await until(readable)).message)).toEqual(files.image)
  })

  it('stays on the media host after a restart, and is erased with its account', async () => {
    const [storage, mediaFolder] = [new MemoryStorage(), await temporaryFolder()]
    const first = await startSimulator({ storage, mediaFolder })
    const client = await link(first, 'a')
    client.stop()
    await until(async () => !(await first.listAccounts())[0]!.online)
    const media = { type: 'image', bytes: files.image } as const
    const { id } = await first.writeAs({ from: CONTACT, to: client.phone, media })
    await first.close()

    const second = await startSimulator({
      storage,
      mediaFolder,
      mediaPort: Number(first.media.hosts[0]!.split(':')[1]),
    })
    trust(second.media)
    await second.openAccount('a')
    const again = startClient(second.url, client.state)
    expect(await download(await until(() => received(again, id)))).toEqual(files.image)
    await again.sock.updateMediaMessage(received(again, id)!)
    expect(await readdir(mediaFolder)).toHaveLength(2)
    await second.removeAccount('a')
    expect(await readdir(mediaFolder)).toEqual([])
  })
})
