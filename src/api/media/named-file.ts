import { Type } from 'typebox'
import { newMediaId } from '../../domain/ids.ts'
import { cleanFilename } from '../../domain/media.ts'
import { Refusal } from '../../domain/refusal.ts'
import type { MediaApi } from '../context.ts'
import { checkUrl, isId } from '../input.ts'
import { MAX_URL_LENGTH } from '../resources/events/webhook.ts'
import { mediaIdSchema } from '../resources/media.ts'

const fileUrlSchema = Type.Object(
  {
    url: Type.String({
      minLength: 1,
      maxLength: MAX_URL_LENGTH,
      description:
        'http or https, reachable from the internet, without a password. Fetched once for each message: to send one file to ' +
        'many recipients, upload it once and send its ID.',
      examples: ['https://example.com/invoice.pdf'],
    }),
  },
  { title: 'FileUrl' },
)

/** A file as a caller names it. */
export const namedFileSchema = Type.Union([mediaIdSchema, fileUrlSchema], {
  description: 'The ID of an uploaded or received file, or a URL from which the file is fetched.',
})

/** @param name the file name that the caller gave @throws Refusal */
export function fileOf(named: string | { url: string }, media: MediaApi, now: number, name: string | null) {
  if (typeof named === 'string') {
    if (!isId(named)) throw new Refusal('media_not_found')
    return { mediaId: named, filename: name }
  }
  const { url } = named
  checkUrl('media.url', url, url => media.checkUrl(url), 'downloads')
  return { mediaId: newMediaId(now), url, filename: name ?? nameIn(url) }
}

/** The last part of the path, if there is one. */
function nameIn(url: string): string | null {
  const last = new URL(url).pathname.split('/').at(-1)!
  try {
    return cleanFilename(decodeURIComponent(last))
  } catch {
    return cleanFilename(last)
  }
}
