import { Link } from '@tanstack/react-router'
import { useWords } from '../i18n/i18n.tsx'
import type { Guide } from '../pages/guides/names.ts'

const GUIDE_OF = {
  webhooks: 'webhooks',
  errors: 'errors',
  situations: 'whatsapp-situations',
  alerts: 'alerts',
  migrating: 'migrating',
} as const

/** Leads from a page to the guide about its subject. */
export function GuideLink({ to }: { to: keyof typeof GUIDE_OF }) {
  const { guides } = useWords()
  const name: Guide = GUIDE_OF[to]
  return (
    <Link to="/guides/$name" params={{ name }}>
      {guides[to]}
    </Link>
  )
}
