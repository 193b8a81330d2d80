import {
  type BinaryNode,
  type GroupMetadata,
  type GroupParticipant,
  getBinaryNodeChildren,
  getBinaryNodeChildString,
  WAMessageAddressingMode,
} from 'baileys'
import type { GroupChange, GroupDetails, GroupMember, GroupRole } from '../../../domain/recipients/group.ts'
import { lidAddressOf, numberOf } from '../addresses.ts'

const ROLES: ReadonlyMap<string, GroupRole> = new Map([
  ['admin', 'admin'],
  ['superadmin', 'owner'],
])
const LIBRARY_ROLES = {
  member: null,
  admin: 'admin',
  owner: 'superadmin',
} as const satisfies Record<GroupRole, GroupParticipant['admin']>

export function toGroupDetails(metadata: GroupMetadata): GroupDetails {
  const {
    id,
    subject = '',
    desc,
    size,
    participants,
    addressingMode,
    announce,
    isCommunity,
    ephemeralDuration,
  } = metadata
  const members = participants.flatMap(member => toMember(member))
  return {
    id,
    subject,
    description: desc || null,
    memberCount: Math.max(size ?? 0, members.length),
    members,
    addressing: addressingMode === WAMessageAddressingMode.LID ? 'lid' : 'number',
    adminsOnly: announce === true,
    isCommunity: isCommunity === true,
    disappearsAfter: ephemeralDuration ?? 0,
  }
}

/** The parts that Baileys uses to send a message. */
export function toMetadata(group: GroupDetails): GroupMetadata {
  const { id, subject, members, addressing, memberCount, disappearsAfter } = group
  return {
    id,
    subject,
    owner: undefined,
    size: memberCount,
    addressingMode: addressing === 'lid' ? WAMessageAddressingMode.LID : WAMessageAddressingMode.PN,
    participants: members.map(member => toParticipant(member, addressing)),
    ...(disappearsAfter > 0 && { ephemeralDuration: disappearsAfter }),
  }
}

/** The changes in the order of the notification. Empty if it reports nothing that the directory contains. */
export function parseGroupChanges({ content }: BinaryNode): GroupChange[] {
  return Array.isArray(content) ? content.flatMap(child => parseChange(child) ?? []) : []
}

function parseChange(child: BinaryNode): GroupChange | null {
  switch (child.tag) {
    case 'add':
    case 'remove':
    case 'promote':
    case 'demote':
      return { kind: child.tag, members: membersIn(child) }
    case 'leave':
      return { kind: 'remove', members: membersIn(child) }
    case 'subject':
      return { kind: 'subject', subject: child.attrs['subject'] ?? '' }
    case 'description':
      return { kind: 'description', description: getBinaryNodeChildString(child, 'body') || null }
    case 'announcement':
    case 'not_announcement':
      return { kind: 'admins_only', adminsOnly: child.tag === 'announcement' }
    case 'ephemeral':
    case 'not_ephemeral':
      return { kind: 'disappearing', disappearsAfter: Number(child.attrs['expiration'] ?? 0) || 0 }
    case 'delete':
      return { kind: 'deleted' }
    case 'modify':
      return { kind: 'unclear' }
    default:
      return null
  }
}

/** A member as Baileys or a notification names it. */
interface Listed {
  id: string
  phoneNumber?: string | undefined
  lid?: string | undefined
  admin?: string | null | undefined
}

function membersIn(change: BinaryNode): GroupMember[] {
  return getBinaryNodeChildren(change, 'participant').flatMap(({ attrs }) => {
    const { jid = '', phone_number, lid, type } = attrs
    return toMember({ id: jid, phoneNumber: phone_number, lid, admin: type })
  })
}

function toMember({ id, phoneNumber, lid, admin }: Listed): GroupMember[] {
  const member: GroupMember = {
    phone: numberOf(id) ?? numberOf(phoneNumber) ?? null,
    lid: lidAddressOf(id) ?? lidAddressOf(lid),
    role: ROLES.get(admin ?? '') ?? 'member',
  }
  return member.phone === null && member.lid === null ? [] : [member]
}

function toParticipant(member: GroupMember, addressing: GroupDetails['addressing']): GroupParticipant {
  const { phone, lid, role } = member
  const id = jidOfMember(member, addressing)
  const number = numberJid(phone)
  const alternate = id === lid ? number && { phoneNumber: number } : lid && { lid }
  return { id, ...(alternate || {}), admin: LIBRARY_ROLES[role] }
}

/** The address that messages in the group use for the member. */
export function jidOfMember({ phone, lid }: GroupMember, addressing: GroupDetails['addressing']): string {
  const number = numberJid(phone)
  return (addressing === 'lid' ? (lid ?? number) : (number ?? lid)) ?? ''
}

function numberJid(phone: string | null): string | undefined {
  return phone === null ? undefined : `${phone}@s.whatsapp.net`
}
