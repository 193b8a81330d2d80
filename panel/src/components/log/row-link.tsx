import type { MouseEvent, ReactNode } from 'react'

interface RowLinkProps {
  href: string
  onOpen: () => void
  children: ReactNode
}

/** The link of a row. It must be cheap: scrolling a list draws thousands of them. */
export function RowLink({ href, onOpen, children }: RowLinkProps) {
  function open(event: MouseEvent): void {
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
    event.preventDefault()
    onOpen()
  }
  return (
    <a href={href} onClick={open} data-row-link="">
      {children}
    </a>
  )
}
