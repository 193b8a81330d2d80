/** A client's queries about the pictures and texts in people's profiles, and the pictures of groups. */
import { createHash } from 'node:crypto'
import type { Account } from '../account.ts'
import { isGroup, lidJid, parseAddress } from '../addresses.ts'
import { type Answer, type Asker, BAD_REQUEST, FORBIDDEN, NOT_ACCEPTABLE, NOT_FOUND } from '../contacts/asker.ts'
import { ownGroup, share } from '../contacts/group-sharing.ts'
import { groupOf, isAdminOf, isMember } from '../contacts/groups.ts'
import { directPathOf } from '../media/direct-path.ts'
import type { Network } from '../network.ts'
import { bytes, child, type Node, node } from '../wire/nodes.ts'
import { acquaintances, notice, ownNotice } from './notices.ts'
import type { Picture, Profile } from './profile.ts'

const JPEG = Buffer.from([0xff, 0xd8, 0xff])
/** Baileys sends 640 by 640 pixels. */
const MAX_PICTURE_BYTES = 2 * 1024 * 1024
const MAX_ABOUT_LENGTH = 700
const HIDDEN = { error: '401', text: 'not-authorized' } as const satisfies Answer

/** The profile of this person as the account sees it. */
export function profileOf(network: Network, viewer: Account, number: string): Profile {
  const owner = network.findAccount(number)
  return owner ? owner.settings.profile : viewer.settings.contact(number)
}

/** True if the person hides this part from the account. */
export function hides(network: Network, viewer: Account, number: string, part: 'profile' | 'status' | 'last'): boolean {
  const owner = network.findAccount(number)
  if (!owner || owner === viewer) return false
  return owner.settings.privacy(part) === 'none' || owner.settings.blocks(viewer.phone)
}

export function answerPicture({ network, account }: Asker, iq: Node): Answer {
  const { target } = iq.attrs
  const { type = 'preview', id } = child(iq, 'picture')?.attrs ?? {}
  const number = parseAddress(target)?.number
  if (isGroup(target) && !isMember(account, target)) return HIDDEN
  if (number && hides(network, account, number, 'profile')) return HIDDEN
  const picture = isGroup(target)
    ? groupOf(account, target).picture
    : number && profileOf(network, account, number).picture
  if (!picture) return NOT_FOUND
  if (id === picture.id) return [node('picture', { status: '304' })]
  const { directPath, hash } = picture
  const url = network.media.urlOf(directPath)
  return [node('picture', { id: picture.id, type, url, direct_path: directPath, hash })]
}

/** Without a picture it removes the present one. */
export async function setPicture(asker: Asker, iq: Node): Promise<Answer> {
  const { network, account } = asker
  const { target } = iq.attrs
  const image = bytes(iq, 'picture')
  if (image && image.length > 0 && !isPicture(image)) return NOT_ACCEPTABLE
  const picture = image && image.length > 0 ? await storePicture(network, account.phone, image) : undefined
  const answer = picture ? [node('picture', { id: picture.id })] : []
  if (isGroup(target)) return network.changeGroup(() => setGroupPicture(asker, target, picture, answer))
  if (target !== undefined && parseAddress(target)?.number !== account.phone) return FORBIDDEN
  await account.applyDurably(() => {
    account.settings.profile = { ...account.settings.profile, picture }
    return ownNotice(network, account, node('picture'))
  })
  const change = pictureChange(account.phone, lidJid(account.phone), picture)
  for (const other of acquaintances(network, account)) {
    const attrs = { from: lidJid(account.phone), type: 'picture' }
    await other.applyDurably(() => notice(network, other, attrs, change))
  }
  return answer
}

async function setGroupPicture({ network, account }: Asker, id: string, picture: Picture | undefined, answer: Answer) {
  const actor = { network, account, number: account.phone }
  const before = ownGroup(actor, id)
  if (!before || (before.locked && !isAdminOf(before, account.phone))) return FORBIDDEN
  const changed = { ...before, picture }
  await share(actor, id, changed, () => null)
  for (const { number } of changed.members) {
    const member = network.findAccount(number)
    const change = pictureChange(account.phone, id, picture)
    await member?.applyDurably(() => notice(network, member, { from: id, type: 'picture' }, change))
  }
  return answer
}

export function pictureChange(author: string, jid: string, picture: Picture | undefined): Node {
  const attrs = { jid, author: lidJid(author) }
  return picture ? node('set', { ...attrs, id: picture.id }) : node('delete', attrs)
}

export function isPicture(image: Buffer): boolean {
  return image.length <= MAX_PICTURE_BYTES && image.subarray(0, JPEG.length).equals(JPEG)
}

/** Puts a picture on the media host, unencrypted. */
export async function storePicture({ media }: Network, owner: string, image: Buffer): Promise<Picture> {
  const directPath = directPathOf(await media.files.create(owner, [image]))
  const hash = createHash('sha256').update(image).digest('base64')
  return { id: Date.now().toString(), directPath, hash }
}

export async function setAbout({ account }: Asker, iq: Node): Promise<Answer> {
  const text = bytes(iq, 'status')?.toString()
  if (text === undefined || [...text].length > MAX_ABOUT_LENGTH) return BAD_REQUEST
  const about = { text, at: Math.floor(Date.now() / 1000) }
  await account.applyDurably(() => {
    account.settings.profile = { ...account.settings.profile, about }
  })
  return []
}

/** An empty answer: no account here has a business profile. */
export function answerBusinessProfile(): Answer {
  return [node('business_profile', { v: '244' })]
}
