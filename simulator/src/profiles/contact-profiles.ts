/** The profiles of contacts. */
import { isNumber, lidJid } from '../addresses.ts'
import type { Network } from '../network.ts'
import { type ContactProfile, type ShownProfile, SimulatorError } from '../types.ts'
import { notice } from './notices.ts'
import { isPicture, pictureChange, profileOf, storePicture } from './profile-queries.ts'

/** @throws SimulatorError */
export async function setContactProfile(network: Network, { from, to, about, picture, username }: ContactProfile) {
  const account = network.getAccount(to)
  if (!isNumber(from) || network.findAccount(from)) throw invalid('the number of a contact as `from`')
  for (const text of [about, username]) if (!['undefined', 'string'].includes(typeof text)) throw invalid('texts')
  const image = picture && Buffer.from(picture)
  if (image && !isPicture(image)) throw invalid('a JPEG as `picture`')
  const stored = image ? await storePicture(network, to, image) : undefined
  await account.applyDurably(() => {
    const before = account.settings.contact(from)
    account.settings.setContact(from, {
      ...before,
      ...(about !== undefined && { about: { text: about, at: Math.floor(Date.now() / 1000) } }),
      ...(username !== undefined && { username }),
      ...(picture !== undefined && { picture: stored }),
    })
    if (picture === undefined) return []
    const attrs = { from: lidJid(from), type: 'picture' }
    return notice(network, account, attrs, pictureChange(from, lidJid(from), stored))
  })
}

/** The profile of this number as the account `viewer` sees it, or the profile of an account. */
export function shownProfile(network: Network, number: string, viewer?: string): ShownProfile {
  const account = network.getAccount(viewer ?? number)
  const { about, picture, username } = profileOf(network, account, number)
  return {
    ...(about && { about: about.text }),
    ...(username && { username }),
    ...(picture && { picture: { id: picture.id, url: network.media.urlOf(picture.directPath) } }),
    blocked: network.findAccount(number)?.settings.blocked.slice() ?? [],
  }
}

function invalid(what: string): SimulatorError {
  return new SimulatorError('invalid_argument', `needs ${what}`)
}
