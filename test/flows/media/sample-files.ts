import { randomBytes } from 'node:crypto'
import type { MediaForm } from '../../../src/domain/media.ts'
import { png } from './harness.ts'

const from = (hex: string, size: number) => Buffer.concat([Buffer.from(hex, 'hex'), randomBytes(size)])

/** A file with random content that WhatsApp can show in this form, and the type that its content shows. */
export function sampleFile(form: MediaForm, size = 100_000): { bytes: Buffer; mimetype: string } {
  switch (form) {
    case 'image':
      return { bytes: png(size), mimetype: 'image/png' }
    case 'video':
      return {
        bytes: from('0000001866747970 6d703432 00000000 6d703432 69736f6d'.replaceAll(' ', ''), size),
        mimetype: 'video/mp4',
      }
    case 'audio':
      return { bytes: from('2321414d520a', size), mimetype: 'audio/amr' }
    case 'voice':
      return { bytes: opus(size), mimetype: 'audio/ogg; codecs=opus' }
    case 'sticker':
      return { bytes: from('5249464600000000574542505650382000', size), mimetype: 'image/webp' }
    case 'document':
      return { bytes: from(Buffer.from('%PDF-1.7\n').toString('hex'), size), mimetype: 'application/pdf' }
  }
}

function opus(size: number): Buffer {
  const page = Buffer.alloc(28)
  page.write('OggS')
  return Buffer.concat([page, Buffer.from('OpusHead'), randomBytes(size)])
}
