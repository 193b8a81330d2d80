import type { StanzaText } from '@pombal/simulator'

/** Stanzas that cause an unhandled rejection or exception in Baileys, some only if their query is refused or cut off. */

const SERVER = 's.whatsapp.net'

export const dirty = (type: string): StanzaText => ({
  tag: 'ib',
  attrs: { from: SERVER },
  content: [{ tag: 'dirty', attrs: { type, timestamp: '1700000000' } }],
})
export const newsletterMessage: StanzaText = {
  tag: 'message',
  attrs: { from: '120363000000000001@newsletter', id: '3EB0AA', t: '1700000000', type: 'text' },
  content: [{ tag: 'plaintext', content: 'news' }],
}
export const offlinePreview: StanzaText = {
  tag: 'ib',
  attrs: { from: SERVER },
  content: [{ tag: 'offline_preview', attrs: { count: '1' } }],
}
export const groupCall: StanzaText = {
  tag: 'call',
  attrs: { from: '5511987654321@s.whatsapp.net', id: 'CALL1', t: '1700000000' },
  content: [{ tag: 'offer', attrs: { 'call-creator': '5511987654321@s.whatsapp.net', type: 'group' } }],
}
export const chatState: StanzaText = { tag: 'chatstate', attrs: { from: '5511987654321@s.whatsapp.net' }, content: [] }
export const pairDevice: StanzaText = {
  tag: 'iq',
  attrs: { from: SERVER, type: 'set', id: 'pair1' },
  content: [{ tag: 'pair-device', content: [{ tag: 'ref' }] }],
}
/** For a `type` such as `constructor`, which every object inherits, where the library or the driver expects one of a few words. */
export const receiptOfType = (type: string): StanzaText => ({
  tag: 'receipt',
  attrs: { from: '5511987654321@s.whatsapp.net', id: '3EB0FEED', type, t: '1700000000' },
})
export const groupWithRole = (type: string): StanzaText => ({
  tag: 'notification',
  attrs: { from: '120363000000000777@g.us', type: 'w:gp2', id: `N${type}`, t: '1700000000' },
  content: [{ tag: 'add', content: [{ tag: 'participant', attrs: { jid: '5511987654321@s.whatsapp.net', type } }] }],
})
