import { proto } from 'baileys'
import { expect, test } from 'vitest'
import { MEDIA_FORMS } from '../../../domain/media.ts'
import { encodeFile } from './content.ts'

const BYTES = new Uint8Array(32)
const FILE = { mediaKey: BYTES, encSha256: BYTES, sha256: BYTES, url: 'u', directPath: 'd', uploadedAt: 0, size: 1 }

test.each(MEDIA_FORMS)('a file has its quote and mentions in every form: %s', form => {
  const contextInfo = { stanzaId: 'A', mentionedJid: ['5511987651091@s.whatsapp.net'] }
  for (const caption of form === 'document' ? ['', 'x'] : ['']) {
    const file = { ...FILE, form, mimetype: 'a/b', filename: null, caption }
    const { messageContextInfo: _, ...message } = proto.Message.decode(encodeFile(file, contextInfo))
    const shown = message.documentWithCaptionMessage?.message ?? message
    const [part] = Object.values(shown).filter(value => value !== null)
    expect(part).toMatchObject({ contextInfo })
  }
})
