import { S_WHATSAPP_NET, type WAMessageKey, type WASocket } from 'baileys'

/** Marks a message as read. Resolves once WhatsApp has the mark. @throws if no answer comes: the mark may be lost */
export async function markRead(socket: Pick<WASocket, 'readMessages' | 'query'>, key: WAMessageKey): Promise<void> {
  await socket.readMessages([key])
  // WhatsApp handles stanzas in their order, so its answer means that it has the mark.
  const ping = { to: S_WHATSAPP_NET, type: 'get', xmlns: 'w:p' }
  const answer = await socket.query({ tag: 'iq', attrs: ping, content: [{ tag: 'ping', attrs: {} }] })
  // Baileys' types lack this: after the timeout of a query its result is undefined.
  if ((answer as unknown) === undefined) throw new Error('WhatsApp did not answer after a read mark.')
}
