/** The changes of groups that clients and contacts make, by the tag of the query's child. */
import { acceptPersonal, decideRequests, revokePersonal, setInvite } from './group-invitations.ts'
import { changeMembers, createGroup, leaveGroup } from './group-members.ts'
import * as settings from './group-settings.ts'
import type { GroupQuery } from './group-sharing.ts'

export const groupChanges: Readonly<Record<string, GroupQuery>> = {
  create: createGroup,
  add: changeMembers('add'),
  remove: changeMembers('remove'),
  promote: changeMembers('promote'),
  demote: changeMembers('demote'),
  leave: leaveGroup,
  subject: settings.setSubject,
  description: settings.setDescription,
  announcement: settings.setAnnouncement,
  not_announcement: settings.setAnnouncement,
  locked: settings.setLocked,
  unlocked: settings.setLocked,
  ephemeral: settings.setTimer,
  not_ephemeral: settings.setTimer,
  member_add_mode: settings.setAddMode,
  membership_approval_mode: settings.setApproval,
  membership_requests_action: decideRequests,
  invite: setInvite,
  accept: acceptPersonal,
  revoke: revokePersonal,
}
