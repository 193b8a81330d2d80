import { jidNormalizedUser, type WASocket } from 'baileys'
import { lidOf, numberOf } from './addresses.ts'
import type { CredentialStore } from './signal/credential-store.ts'

/** WhatsApp renews tokens weekly (Baileys `tc-token-utils.js`). */
const WEEK_SECONDS = 604_800

/**
 * Records that the contact at this address has received a token from us. Baileys loses its own record, because it writes
 * to a transaction that has ended, and would send a token after every message.
 */
export async function noteToken(
  { signalRepository }: WASocket,
  { keys }: CredentialStore,
  address: string,
): Promise<void> {
  if (!numberOf(address) && !lidOf(address)) return
  const lid = lidOf(address) ? address : await signalRepository.lidMapping.getLIDForPN(address)
  const contact = jidNormalizedUser(lid ?? address)
  const seconds = Math.floor(Date.now() / 1_000)
  const row = (await keys.get('tctoken', [contact]))[contact]
  const week = (at: number) => Math.floor(at / WEEK_SECONDS)
  if (row?.senderTimestamp !== undefined && week(row.senderTimestamp) === week(seconds)) return
  await keys.set({ tctoken: { [contact]: { token: Buffer.alloc(0), ...row, senderTimestamp: seconds } } })
}
