import { Refusal } from '../../../../domain/refusal.ts'
import type { Account, Identity } from '../../../../store/accounts/accounts.ts'
import type { ApiContext, OidcCompleted } from '../../../context.ts'

type Identified = Extract<OidcCompleted, { kind: 'identified' }>

/**
 * Only ASCII addresses are compared with the names of accounts. Names are the same if they look alike to Unicode (NFKC),
 * but addresses that look alike may be mailboxes of different people.
 */
const PLAIN_ADDRESS = /^[\x21-\x7e]+@[\x21-\x7e]+$/

/**
 * The account of a login: the one that it is bound to, else the one without a password whose name is the verified e-mail address. The
 * login is then bound to it. From then on the address has no meaning.
 * @throws Refusal
 */
export async function findAccount(
  { store, logger, now }: ApiContext,
  { readEmail, ...identity }: Identified,
  { address, requestId }: { address: string; requestId: string },
): Promise<Account> {
  const known = await store.accounts.findByIdentity(identityOf(identity))
  if (known !== null) return known
  const { email, problem } = await readEmail()
  if (problem !== null) logger.warn({ requestId, reason: problem }, 'oidc.email_unreadable')
  if (!email?.isVerified) throw new Refusal('oidc_email_unverified')
  const account = PLAIN_ADDRESS.test(email.address) ? await store.accounts.findByName(email.address) : null
  if (account === null) throw new Refusal('oidc_unknown_account')
  const entry = {
    actor: account.id,
    actorName: account.name,
    action: 'finishOidcSignIn',
    instanceId: null,
    address,
    details: { boundTo: identity.issuer },
  }
  const bind = () => store.accounts.bind(account.id, identityOf(identity), now())
  const binding = await store.audit.during(entry, bind)
  if (binding === 'bound') return account
  throw new Refusal(binding === 'no_account' ? 'oidc_unknown_account' : 'oidc_other_login')
}

/**
 * Accepts an invitation with a login instead of a password. The provider need not report an e-mail address: the link is enough.
 * @param digest in hexadecimal
 * @throws Refusal
 */
export async function acceptWithLogin(
  { store, now }: ApiContext,
  digest: string,
  identified: Identified,
  address: string,
): Promise<Account> {
  const bytes = Buffer.from(digest, 'hex')
  const invited = await store.accounts.findInvited(bytes)
  if (invited === null) throw new Refusal('invitation_not_found')
  const entry = {
    actor: invited.id,
    actorName: invited.name,
    action: 'acceptInvitation',
    instanceId: null,
    address,
    details: { boundTo: identified.issuer },
  }
  const accept = () => store.accounts.acceptWith(bytes, identityOf(identified), now())
  const account = await store.audit.during(entry, accept)
  if (account === 'taken') throw new Refusal('oidc_login_taken')
  if (account === null) throw new Refusal('invitation_not_found')
  return account
}

export function identityOf({ issuer, subject }: Identity): Identity {
  return { issuer, subject }
}
