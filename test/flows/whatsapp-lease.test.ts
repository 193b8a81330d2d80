import { expect, test } from 'vitest'
import { until } from '../until.ts'
import { Stage } from './whatsapp-stage.ts'

const CONTACT = '5511987654321'

/** What the credentials of the instance are, as the store has them. */
async function storedCredentials(stage: Stage, id: string): Promise<string> {
  const rows = await stage.store.credentials.get(id, 'creds', ['creds'])
  return Buffer.from(rows.get('creds') ?? []).toString()
}

test('a key that is written after the lease has moved on is refused, and the socket ends', async () => {
  await using stage = await Stage.open()
  let lost = 0
  const { id, phone } = await stage.link({
    onLeaseLost: () => {
      lost += 1
    },
  })
  const lease = await stage.lease(id)
  await stage.store.leases.release(lease)
  const [next] = await stage.store.leases.acquire('another', 1)
  expect(next?.epoch).toBe(lease.epoch + 1)
  const before = await storedCredentials(stage, id)
  const { opened } = stage.line

  // Decryption changes the Signal session, and WhatsApp is notified only once that is stored.
  await stage.network.writeAs({ from: CONTACT, to: phone, text: 'Who has it?' })
  await until('the loss to be noticed', () => lost === 1)
  await until('the socket to end', () => stage.line.sockets === 0)
  // Every write that was asked for before this one has been made or refused.
  await stage.store.leases.renew('another')
  expect(await storedCredentials(stage, id)).toBe(before)
  expect(await stage.received(id)).toEqual([])

  // WhatsApp still holds it for the present owner of the instance.
  const owner = await stage.connect(id, { lease: next! })
  await until('the message', async () => (await stage.received(id)).length === 1)
  expect(stage.line.opened).toBe(opened + 1)
  expect(lost).toBe(1)
  await stage.stop(owner)
})

test('a node that wakes up late sends and opens nothing until its lease is renewed', async () => {
  await using stage = await Stage.open()
  let renewed = true
  let refusals = 0
  const mayAct = () => {
    if (!renewed) refusals += 1
    return renewed
  }
  const { id } = await stage.link({ mayAct })
  renewed = false
  const { id: message } = await stage.accept(id, CONTACT, 'Not before I may')
  await until('the socket to be given up', () => stage.line.sockets === 0)
  const before = refusals
  await until('another attempt to connect', () => refusals > before)
  expect(await stage.network.inbox(CONTACT)).toEqual([])
  const refusedLogins = (await stage.network.listAccounts()).filter(({ online }) => online)
  expect(refusedLogins).toEqual([])

  renewed = true
  await stage.becomes(id, message, 'sent')
  expect(await stage.network.inbox(CONTACT)).toMatchObject([{ text: 'Not before I may', copies: 1 }])
})
