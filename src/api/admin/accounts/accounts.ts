import { randomBytes } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { MAX_ACCOUNT_INSTANCES, type Role } from '../../../domain/access.ts'
import { newAccountId } from '../../../domain/ids.ts'
import { Refusal } from '../../../domain/refusal.ts'
import type { AccountAccess, AccountChange } from '../../../store/accounts/accounts.ts'
import type { Store } from '../../../store/store.ts'
import type { Api, ApiContext } from '../../context.ts'
import { invalid } from '../../http/error-handler.ts'
import { isId, parseName, tokenDigest } from '../../input.ts'
import { pageOf } from '../../resources/page.ts'
import {
  accountInstancesSchema,
  accountNameSchema,
  accountSchema,
  accountView,
  invitedAccountSchema,
  roleSchema,
} from '../../resources/people/account.ts'
import { dataOf } from '../../resources/schema-kit.ts'
import { noteForAudit } from '../audit/record-changes.ts'

const INVITATION_MS = 3 * 24 * 60 * 60_000
const TOKEN_BYTES = 32
const accountParams = Type.Object({ id: Type.String({ description: 'The account.' }) })
const accessProperties = { role: roleSchema, instances: Type.Optional(accountInstancesSchema) }

function newInvitation(publicUrl: URL | null, { account }: FastifyRequest) {
  const token = randomBytes(TOKEN_BYTES).toString('base64url')
  // Browsers send no fragment to servers, so the token appears in no log of a proxy.
  const path = `/invitation#${token}`
  const url = publicUrl === null ? path : new URL(path, publicUrl).href
  return {
    url,
    invitation: {
      digest: Buffer.from(tokenDigest(token), 'hex'),
      lastsMs: INVITATION_MS,
      invitedBy: account?.id ?? null,
    },
  }
}

/** @throws Refusal */
function parseAccess({ role, instances = null }: { role: Role; instances?: string[] | null }) {
  if (instances !== null && !instances.every(isId)) throw invalid('instances', 'must be IDs of instances')
  if (instances !== null && role === 'owner') throw invalid('instances', 'must be null: an owner reaches all instances')
  return { role, instances: instances === null ? null : [...new Set(instances)] }
}

/** @throws Refusal if one of the instances does not exist, unless the account already has it: it may have been deleted since */
async function checkInstances(store: Store, { instances }: AccountAccess, already: readonly string[] | null) {
  const ids = (instances ?? []).filter(id => !already?.includes(id))
  if (ids.length === 0) return
  const { data } = await store.instances.list({ limit: MAX_ACCOUNT_INSTANCES }, { ids })
  const unknown = ids.find(id => data.every(instance => instance.id !== id))
  if (unknown !== undefined) throw invalid('instances', `names an instance that does not exist: ${unknown}`)
}

/** The access of an account, as the audit records it. */
function grantOf({ role, instances }: AccountAccess) {
  return { role, instances: instances === null ? 'all' : instances.join(' ') }
}

/** @throws Refusal unless it was changed */
function changedOrRefuse(change: AccountChange) {
  if (change.kind === 'no_account') throw new Refusal('account_not_found')
  if (change.kind === 'last_owner') throw new Refusal('last_owner')
  return change.account
}

export function listAccounts(api: Api, { store }: ApiContext): void {
  api.get(
    '/accounts',
    {
      schema: {
        operationId: 'listAccounts',
        summary: 'List the accounts',
        description: 'By name, on one page. The admin key is not one of them: it always has the rights of an owner.',
        tags: ['Accounts'],
        response: { 200: pageOf(accountSchema, 'All accounts.') },
      },
    },
    async () => {
      const setter = await store.sessions.findPasswordSetter()
      return { data: (await store.accounts.list()).map(account => accountView(account, setter)), nextCursor: null }
    },
  )
}

export function createAccount(api: Api, { store, settings, now }: ApiContext): void {
  api.post(
    '/accounts',
    {
      schema: {
        operationId: 'createAccount',
        summary: 'Invite a person',
        description:
          'The person opens the link within 3 days, and sets a password or signs in with the OpenID Connect provider.',
        tags: ['Accounts'],
        body: Type.Object({ name: accountNameSchema, ...accessProperties }, { title: 'AccountToCreate' }),
        response: { 201: dataOf(invitedAccountSchema, 'Created. The link is shown only once.') },
      },
      config: { refusals: ['invalid_request', 'account_exists', 'too_many_accounts'] },
    },
    async (request, reply) => {
      const name = parseName('name', request.body.name)
      const access = parseAccess(request.body)
      await checkInstances(store, access, null)
      const { url, invitation } = newInvitation(settings.publicUrl ?? null, request)
      const id = newAccountId()
      noteForAudit(request, { id, name, ...grantOf(access) })
      const account = await store.accounts.create({ id, name, ...access }, invitation, now())
      if (account === 'exists') throw new Refusal('account_exists')
      if (account === 'not_owner') throw new Refusal('forbidden')
      if (account === 'full') throw new Refusal('too_many_accounts')
      return reply.code(201).send({ data: { account: accountView(account, null), url } })
    },
  )
}

export function changeAccount(api: Api, { store }: ApiContext): void {
  api.put(
    '/accounts/:id/access',
    {
      schema: {
        operationId: 'changeAccount',
        summary: 'Change what an account may do',
        description:
          'Takes effect at once, on every node, also for open sessions. The last active owner must stay an owner. If ' +
          'the account is no longer an owner, the open links that it created become invalid, and so do those that were created ' +
          'without an account, for example with the admin key. If it set the password of the panel (`panelPassword`), the ' +
          'password becomes invalid too, and all sessions without an account end.',
        tags: ['Accounts'],
        params: accountParams,
        body: Type.Object(accessProperties, { title: 'AccountAccess' }),
        response: { 200: dataOf(accountSchema, 'The changed account.') },
      },
      config: { refusals: ['invalid_request', 'account_not_found', 'last_owner'] },
    },
    async request => {
      const access = parseAccess(request.body)
      const { id } = request.params
      const account = (await store.accounts.list()).find(one => one.id === id)
      if (account !== undefined) await checkInstances(store, access, account.instances)
      const setter = await store.sessions.findPasswordSetter()
      const clears = setter === id && access.role !== 'owner'
      noteForAudit(request, { ...grantOf(access), ...(clears && { panelPasswordRemoved: true }) })
      const changed = changedOrRefuse(await store.accounts.change(id, access))
      return { data: accountView(changed, clears ? null : setter) }
    },
  )
}

export function removeAccount(api: Api, { store }: ApiContext): void {
  api.delete(
    '/accounts/:id',
    {
      schema: {
        operationId: 'removeAccount',
        summary: 'Remove an account',
        description:
          'Ends its sessions at once, on every node. The last active owner cannot be removed. If the account was ' +
          'an owner, the open links that it created become invalid, and so do those that were created without an account, for ' +
          'example with the admin key. If it set the password of the panel (`panelPassword`), that password becomes invalid ' +
          'too, and all sessions without an account end.',
        tags: ['Accounts'],
        params: accountParams,
        response: { 204: Type.Null({ description: 'Removed.' }) },
      },
      config: { refusals: ['account_not_found', 'last_owner'] },
    },
    async (request, reply) => {
      const { id } = request.params
      if ((await store.sessions.findPasswordSetter()) === id) noteForAudit(request, { panelPasswordRemoved: true })
      changedOrRefuse(await store.accounts.remove(id))
      return reply.code(204).send(null)
    },
  )
}

export function inviteAccount(api: Api, { store, settings }: ApiContext): void {
  api.post(
    '/accounts/:id/invitation',
    {
      schema: {
        operationId: 'inviteAccount',
        summary: 'Create a new link for an account',
        description:
          'Replaces an unused link. It also helps with a forgotten password: the old password works until the person ' +
          "sets a new one, which ends the account's sessions.",
        tags: ['Accounts'],
        params: accountParams,
        response: { 200: dataOf(invitedAccountSchema, 'The new link, shown only once.') },
      },
      config: { refusals: ['account_not_found'] },
    },
    async request => {
      const { url, invitation } = newInvitation(settings.publicUrl ?? null, request)
      const account = await store.accounts.invite(request.params.id, invitation)
      if (account === null) throw new Refusal('account_not_found')
      if (account === 'not_owner') throw new Refusal('forbidden')
      return { data: { account: accountView(account, await store.sessions.findPasswordSetter()), url } }
    },
  )
}
