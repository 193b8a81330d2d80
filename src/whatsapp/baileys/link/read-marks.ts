import { S_WHATSAPP_NET, type WAMessageKey, type WASocket } from 'baileys'

/** Marks a message as read. Resolves once WhatsApp has the mark. */
export async function markRead(socket: Pick<WASocket, 'readMessages' | 'query'>, key: WAMessageKey): Promise<void> {
  await socket.readMessages([key])
  // WhatsApp handles stanzas in their order, so its answer means that it has the mark.
  const ping = { to: S_WHATSAPP_NET, type: 'get', xmlns: 'w:p' }
  await socket.query({ tag: 'iq', attrs: ping, content: [{ tag: 'ping', attrs: {} }] })
}
