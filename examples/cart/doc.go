// Package cart is a cart: totals and discounts that are derived, and a payment that happens once.
// README.md describes it.
//
//	put -----> lines ..> sums (a node per line) ..> totals
//	redeem --> coupon .............................../  :
//	checkout --> order, and a task of pay               : (reads what is due)
//	             ^              |                  checkout
//	             '---- Done ----'--> the payment service, when the order is in the log
package cart
