import type { SignalKeyStoreWithTransaction } from 'baileys'
import { expect, test } from 'vitest'
import { VersionWatch } from '../link/contacts.ts'
import { adaptKeys, noteUnanswered, sending } from './send-context.ts'

const ADDRESS = '5511987654321@s.whatsapp.net'

test('an unanswered query delays a message once, and again after a message whose queries were answered', async () => {
  const link = {}
  const keys = { get: async () => ({}), set: async () => undefined, transaction: async () => undefined }
  const changes = { settled: async () => undefined, idle: async () => undefined }
  const versions = new VersionWatch({ addressBookChanging: async () => undefined }, () => undefined)
  adaptKeys(keys as unknown as SignalKeyStoreWithTransaction, link, changes, versions)
  const send = (isAnswered: boolean) =>
    sending.run({ link, address: ADDRESS, record: async () => undefined }, async () => {
      if (!isAnswered) noteUnanswered()
      await (keys.get as (type: string, ids: string[]) => Promise<unknown>)('tctoken', [ADDRESS])
    })
  const unanswered = expect.objectContaining({ name: 'QueryUnanswered' })
  await expect(send(false)).rejects.toEqual(unanswered)
  await send(false)
  await send(true)
  await expect(send(false)).rejects.toEqual(unanswered)
})
