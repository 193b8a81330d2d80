import { S_WHATSAPP_NET, type WASocket } from 'baileys'

/**
 * Asks WhatsApp to remove this device from the account and, unlike Baileys' own `logout`, waits for the answer.
 * @throws if WhatsApp refuses or does not answer
 */
export async function removeDevice({ query }: Pick<WASocket, 'query'>, jid: string): Promise<void> {
  const answer: unknown = await query({
    tag: 'iq',
    attrs: { to: S_WHATSAPP_NET, type: 'set', xmlns: 'md' },
    content: [{ tag: 'remove-companion-device', attrs: { jid, reason: 'user_initiated' } }],
  })
  if (answer === undefined) throw new Error('WhatsApp did not answer.')
}
