import {
  GroupCipher,
  GroupSessionBuilder,
  SenderKeyDistributionMessage,
  SenderKeyName,
  SenderKeyRecord,
} from 'baileys/lib/Signal/Group/index.js'
import { expect, test } from 'vitest'
import { patchLibraries } from './library-patches.ts'

const NAME = new SenderKeyName('120363000000000042@g.us', { id: '1', deviceId: 0, toString: () => '1.0' })

/** One member's keys. */
function createMember() {
  let kept: ReturnType<SenderKeyRecord['serialize']> | undefined
  const store = {
    loadSenderKey: async () =>
      kept === undefined ? new SenderKeyRecord() : SenderKeyRecord.deserialize(Buffer.from(JSON.stringify(kept))),
    storeSenderKey: async (_name: SenderKeyName, record: SenderKeyRecord) => {
      kept = record.serialize()
    },
  }
  return { builder: new GroupSessionBuilder(store), cipher: new GroupCipher(store, NAME) }
}

test('a message that was written before its group key was sent several more times is decrypted', async () => {
  patchLibraries()
  const [writer, reader] = [createMember(), createMember()]
  const give = async () => {
    const bytes = (await writer.builder.create(NAME)).serialize()
    await reader.builder.process(NAME, new SenderKeyDistributionMessage(null, null, null, null, bytes))
  }
  await give()
  const late = await writer.cipher.encrypt(Buffer.from('late'))
  for (let n = 0; n < 6; n += 1) {
    const next = await writer.cipher.encrypt(Buffer.from(`${n}`))
    await give()
    expect(Buffer.from(await reader.cipher.decrypt(next)).toString()).toBe(`${n}`)
  }
  expect(Buffer.from(await reader.cipher.decrypt(late)).toString()).toBe('late')
})
